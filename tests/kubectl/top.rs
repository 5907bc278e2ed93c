//! `kubectl top`.

use super::{Kubectl, VERSIONS, busy, rows};

/// The memory of a row of `allot top`: behind the CPU come a request and a limit, each perhaps with a share.
fn memory<'a>(cells: &[&'a str]) -> &'a str {
    cells
        .iter()
        .find(|cell| cell.ends_with("Mi"))
        .copied()
        .unwrap_or("none")
}

#[test]
fn top_shows_nodes_pods_and_containers() {
    for version in VERSIONS {
        let (server, _process) = busy::server();
        let kubectl = Kubectl::with(version, server);
        let pods = rows(&kubectl.good("top pods", ""));
        assert_eq!(pods[0], "NAME CPU(cores) MEMORY(bytes)");
        // 250m, as exactly as a second tells.
        let near = |row: &str, start: &str, end: &str| {
            let cpu = row
                .strip_prefix(start)
                .and_then(|row| row.strip_suffix(end));
            let milli = cpu.and_then(|cpu| cpu.parse::<u64>().ok());
            assert!(milli.is_some_and(|m| m.abs_diff(250) < 25), "{row}");
        };
        near(&pods[1], "web ", "m 12Mi");
        // `allot top` has the same figures of the same pod; the second read may be of another moment.
        let (table, _) = kubectl.server.told("top --once");
        let own = rows(&table)
            .into_iter()
            .find(|row| row.starts_with("web c "));
        let own = own.unwrap_or_else(|| panic!("{table}"));
        let cells: Vec<_> = own.split(' ').collect();
        near(
            &format!("web {} {}", cells[2], memory(&cells)),
            "web ",
            "m 12Mi",
        );
        let containers = rows(&kubectl.good("top pods --containers -l app=web", ""));
        assert_eq!(containers[0], "POD NAME CPU(cores) MEMORY(bytes)");
        near(&containers[1], "web c ", "m 12Mi");
        near(&rows(&kubectl.good("top pod web", ""))[1], "web ", "m 12Mi");
        let all = rows(&kubectl.good("top pods -A", ""));
        near(&all[1], "default web ", "m 12Mi");
        let nodes = rows(&kubectl.good("top nodes", ""));
        assert!(nodes[0].starts_with("NAME CPU(cores) CPU"), "{nodes:?}");
        let node: Vec<_> = nodes[1].split(' ').collect();
        assert_eq!((node.len(), node[0]), (5, "node"), "{nodes:?}");
        assert!(
            node[2].ends_with('%') && node[3].ends_with("Mi"),
            "{node:?}"
        );
        // The same words still mean the pods themselves.
        assert!(rows(&kubectl.good("get pods", ""))[1].starts_with("web 1/1 Running"));
    }
}
