//! Files that come, change, go, and are not what they seem.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use super::*;

/// A directory, and what is told of it.
struct Scene {
    temp: tempfile::TempDir,
    told: Receiver<Seen>,
    _manifests: Manifests,
}

fn scene() -> Scene {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join("d")).unwrap();
    fs::set_permissions(temp.path().join("d"), fs::Permissions::from_mode(0o755)).unwrap();
    let (send, told) = channel();
    let manifests = Manifests::start(&temp.path().join("d"), move |seen| send.send(seen).is_ok());
    Scene {
        temp,
        told,
        _manifests: manifests.unwrap(),
    }
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join("d").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// Waits until this is told, in short: `a.yaml=text b.yaml!why`.
    fn until(&self, expected: &str) {
        let start = Instant::now();
        let mut last = String::new();
        while start.elapsed() < Duration::from_secs(15) {
            let Ok(seen) = self.told.recv_timeout(Duration::from_millis(100)) else {
                continue;
            };
            last = short(&seen);
            if last == expected {
                return;
            }
        }
        panic!("{expected:?} was not told, but {last:?}");
    }
}

fn short(seen: &Seen) -> String {
    let Ok(files) = seen else {
        return seen.clone().unwrap_err();
    };
    let texts = files.iter().map(|Found { name, content }| match content {
        Content::Text(text) => format!("{name}={}", String::from_utf8_lossy(text)),
        Content::Refused(why) => format!("{name}!{why}"),
        Content::Unsettled => format!("{name}?"),
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn files_are_told_as_they_come_change_and_go() {
    let scene = scene();
    scene.until("");
    scene.write("a.yaml", "one");
    scene.write(".b.yaml", "hidden");
    scene.write("c.yaml~", "an editor's");
    scene.until("a.yaml?");
    scene.until("a.yaml=one");
    scene.write("a.yaml", "two");
    scene.until("a.yaml=two");
    fs::rename(scene.path("a.yaml"), scene.path("b.json")).unwrap();
    scene.until("b.json=two");
    fs::remove_file(scene.path("b.json")).unwrap();
    scene.until("");
}

#[test]
fn a_file_that_is_still_written_waits() {
    use std::io::Write;
    let scene = scene();
    let mut file = File::create(scene.path("a.yaml")).unwrap();
    for _ in 0..8 {
        file.write_all(b"x").unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    drop(file);
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "a.yaml=xxxxxxxx") {
        told.push(short(
            &scene.told.recv_timeout(Duration::from_secs(15)).unwrap(),
        ));
    }
    told.retain(|one| one.contains('='));
    assert_eq!(told, ["a.yaml=xxxxxxxx"], "no half of it was told");
}

#[test]
fn what_others_may_have_made_is_not_read() {
    let scene = scene();
    scene.write("secret", "elsewhere");
    symlink(scene.path("secret"), scene.path("a.yaml")).unwrap();
    scene.until("a.yaml!is a symlink: a regular file is right");
    fs::remove_file(scene.path("a.yaml")).unwrap();
    scene.write("b.yaml", "open");
    fs::set_permissions(scene.path("b.yaml"), fs::Permissions::from_mode(0o666)).unwrap();
    scene
        .until("b.yaml!is not read: others may write to it (mode 0666): chmod go-w makes it right");
    fs::set_permissions(scene.path("b.yaml"), fs::Permissions::from_mode(0o600)).unwrap();
    scene.until("b.yaml=open");
    fs::remove_file(scene.path("b.yaml")).unwrap();
    fs::create_dir(scene.path("d.yaml")).unwrap();
    scene.until("d.yaml!is no regular file");
    fs::remove_dir(scene.path("d.yaml")).unwrap();
    scene.write("e.yaml", &"x".repeat((1 << 20) + 1));
    scene.until("e.yaml!is longer than 1048576 bytes");
}

#[test]
fn the_directory_may_go_come_and_be_another() {
    let scene = scene();
    scene.until("");
    let dir = scene.temp.path().join("d");
    scene.write("a.yaml", "one");
    scene.until("a.yaml=one");
    fs::rename(&dir, scene.temp.path().join("aside")).unwrap();
    scene.until("");
    fs::create_dir(&dir).unwrap();
    scene.write("b.yaml", "two");
    scene.until("b.yaml=two");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let path = dir.display();
    scene.until(&format!(
        "{path} is not read: others may write to it (mode 0777): chmod go-w makes it right"
    ));
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    scene.until("b.yaml=two");
}

#[test]
fn too_many_files_are_not_read_at_all() {
    let scene = scene();
    scene.until("");
    for number in 0..=MAX_FILES {
        scene.write(&format!("{number}.yaml"), "x");
    }
    let path = scene.temp.path().join("d").display().to_string();
    scene.until(&format!(
        "{path} is not read: it holds more than 256 manifests"
    ));
}
