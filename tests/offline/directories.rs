//! Directories behind `-f`.

use std::os::unix::fs::symlink;

use super::{NODE, Place, pod};

/// The pods of an input in their order, and the exit code.
fn pods(place: &Place, words: &str) -> (Vec<String>, i32) {
    let (out, err, code) = place.run(&format!("explain {words}"));
    assert_eq!(err, "", "{words}");
    let names = out
        .lines()
        .filter_map(|line| line.strip_prefix("Pod:        default/"))
        .map(str::to_owned)
        .collect();
    (names, code)
}

#[test]
fn the_manifests_of_a_directory_are_read_by_name() {
    let place = Place::new()
        .with("in/node.json", r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1", "memory": "1Gi"}}}"#)
        .with("in/b.yml", &pod("b"))
        .with("in/a.yaml", &pod("a"))
        .with("in/README.md", "no manifest")
        .with("in/c.yaml.orig", "no: [manifest")
        .with("in/below/d.yaml", &pod("d"))
        .with("in/below/deeper/e.yaml", &pod("e"));
    assert_eq!(pods(&place, "-f in"), (vec!["a".into(), "b".into()], 0));
    let all = ["a", "b", "d", "e"].map(str::to_owned).to_vec();
    assert_eq!(pods(&place, "-R -f in"), (all, 0));
    // A file may be named beside a directory, and need not end in a certain way.
    let place = place.with("f", &pod("f"));
    let (names, _) = pods(&place, "-f f in/below --recursive -f in/node.json");
    assert_eq!(names, ["f", "d", "e"]);
}

/// A link to a file is the file; one to a directory is not followed, wherever it leads.
#[test]
fn links_lead_neither_in_circles_nor_out() {
    let place = Place::new()
        .with("out/secret.yaml", &pod("secret"))
        .with("real", &pod("linked"))
        .with("in/node.yaml", NODE)
        .with("in/sub/a.yaml", &pod("a"));
    let link = |to: &str, name: &str| symlink(to, place.path(name)).unwrap();
    link("..", "in/sub/up");
    link(".", "in/self.yaml");
    link("../out", "in/out");
    link("../real", "in/linked.yaml");
    assert_eq!(
        pods(&place, "-R -f in"),
        (vec!["linked".into(), "a".into()], 0)
    );
    // A directory that is itself named by a link is meant.
    link("in", "named");
    assert_eq!(pods(&place, "-f named"), (vec!["linked".into()], 0));
    link("loop.yaml", "in/loop.yaml");
    link("nowhere", "in/sub/gone.yaml");
    let (_, err, code) = place.run("explain -R -f in");
    assert_eq!(code, 2);
    assert!(
        err.contains("error: in/loop.yaml: document 1: cannot be read: Too many levels"),
        "{err}"
    );
    assert!(
        err.contains("error: in/sub/gone.yaml: document 1: cannot be read: No such file"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 2, "{err}");
}

#[test]
fn a_directory_without_a_manifest_is_no_input() {
    let place = Place::new()
        .with("docs/README.md", "nothing")
        .with("outer/inner/pod.yaml", &pod("a"))
        .with("outer/other/pod.yaml", &pod("b"));
    std::fs::create_dir(place.path("empty")).unwrap();
    let none = "holds no file that ends in .yaml, .yml or .json";
    for (dir, more) in [
        ("empty", ""),
        ("docs", ""),
        ("outer", "; -R looks into the 2 directories in it as well"),
    ] {
        for command in ["explain", "apply", "create", "delete"] {
            let (_, err, code) = place.run(&format!("{command} -f {dir}"));
            assert_eq!(
                (err, code),
                (format!("error: {dir}: document 1: {none}{more}\n"), 2),
                "{command}"
            );
        }
    }
    let (_, err, code) = place.run("explain -R -f empty");
    assert_eq!(
        (err, code),
        (format!("error: empty: document 1: {none}\n"), 2)
    );
}

/// What would block or never end is not opened, unless it is named itself.
#[test]
fn pipes_in_a_directory_are_told_and_not_opened() {
    let place = Place::new()
        .with("in/node.yaml", NODE)
        .with("in/a.yaml", &pod("a"));
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("in/pipe.yaml"))
        .status()
        .unwrap();
    assert!(made.success());
    let (_, err, code) = place.run("explain -f in");
    assert_eq!(
        (err.as_str(), code),
        (
            "error: in/pipe.yaml: document 1: is no regular file; name it with -f if it is meant\n",
            2
        )
    );
}

#[test]
fn trees_are_walked_within_bounds() {
    let deep = "d/".repeat(40);
    let place = Place::new()
        .with("in/a.yaml", &pod("a"))
        .with(&format!("in/{deep}b.yaml"), &pod("b"));
    let (_, err, code) = place.run("explain -R -f in");
    assert_eq!(code, 2);
    assert!(
        err.contains("is not looked into: -R goes 32 levels deep"),
        "{err}"
    );
    // All together have a bound as well.
    let comment = "# a comment, again and again\n".repeat(140_000);
    let place = (0..17).fold(Place::new(), |place, number| {
        place.with(&format!("in/{number:02}.yaml"), &comment)
    });
    let (_, err, code) = place.run("explain -f in");
    assert_eq!(code, 2);
    assert!(
        err.contains("in/16.yaml: document 1: is not read: all files up to it"),
        "{err}"
    );
}
