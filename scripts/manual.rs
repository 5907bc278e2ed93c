//! Writes the man pages and shell completions of both programs into a directory; `scripts/package` runs it.
//!
//! An example and not a subcommand: what only a build needs is in neither program, and what it needs
//! (`clap_mangen`, `clap_complete`) is no dependency of theirs.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, bail};
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};

fn main() -> anyhow::Result<()> {
    let Some(dir) = std::env::args_os().nth(1) else {
        bail!("usage: manual DIRECTORY");
    };
    let dir = Path::new(&dir);
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    write(dir, allotd::cli::Cli::command(), "1")?;
    write(dir, allotd::daemon::Args::command(), "8")
}

fn write(dir: &Path, mut program: Command, section: &str) -> anyhow::Result<()> {
    // `allot help get` is no page of its own. Built, each command knows its whole name.
    let mut commands = program.clone().disable_help_subcommand(true);
    commands.build();
    pages(dir, &commands, section)?;
    let name = program.get_name().to_owned();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut program, &name, dir)?;
    }
    Ok(())
}

/// The page of a command, and of each below it: `allot.1`, `allot-quota.1`, `allot-quota-explain.1`.
fn pages(dir: &Path, command: &Command, section: &str) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut page = File::create(dir.join(format!("{name}.{section}")))?;
    clap_mangen::Man::new(command.clone())
        .section(section)
        .date("")
        .render(&mut page)?;
    for inner in command
        .get_subcommands()
        .filter(|it| !it.is_hide_set() && it.get_name() != "help")
    {
        pages(dir, inner, section)?;
    }
    Ok(())
}
