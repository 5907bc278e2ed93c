//! The command line. All of it is in the library: see `allotd::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(allotd::cli::main(std::env::args_os()))
}
