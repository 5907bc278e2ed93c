//! `allot proxy` before a server: what programs reach that speak TCP.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::server::Server;

/// A running proxy. It ends with its owner.
pub struct Proxy {
    process: Child,
    /// `ADDRESS:PORT`
    pub address: String,
}

impl Proxy {
    /// Starts one on a port of its own choice, and waits until it serves.
    pub fn before(server: &Server) -> Self {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin!("allot"))
            .arg("--socket")
            .arg(server.socket())
            .args(["proxy", "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("Starting to serve on ").unwrap();
        Self {
            process,
            address: address.to_owned(),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
