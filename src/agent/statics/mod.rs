//! Static pods: those that files of the node hold.
//!
//! Decides which of them begin and end. A file that cannot be used now (half written, wrong, not to be
//! trusted) ends nothing: its pod stays until the file is sound again or gone. Everything follows from
//! the files as seen last and the pods as they are, so a crash at any instant only repeats a step.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) use read::{CONFIG, Files, Reading, StaticPod, read};

use super::admit::Origin;
use super::events::Severity;
use super::input::{Handle, Input};
use super::request::{PodKey, Refusal};
use super::run::Agent;
use crate::config::Config;
use crate::observation::manifests::Manifests;

/// What is known of the files, and what was told of them.
#[derive(Debug, Default)]
pub(super) struct Statics {
    /// It looks as long as this is held.
    looker: Option<Manifests>,
    /// By name; `None` before the first look.
    pub(super) files: Option<BTreeMap<String, Reading>>,
    /// Why no file can be known.
    fault: Option<String>,
    /// What is wrong with a file or its pod, by the file's name.
    wrong: BTreeMap<String, Wrong>,
    /// The files are not as when they were gone through last.
    due: bool,
}

/// Something wrong.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    /// In words, with the numbers of the last try.
    text: String,
    /// What it is without its numbers: the same is told once.
    gist: String,
}

impl Statics {
    /// Begins to look at the directory of the settings. Without one there are no static pods.
    pub fn start(config: &Config, node: &str, handle: &Handle) -> Self {
        let dir = config.static_pod_path.clone();
        let mut statics = Self::default();
        if dir.as_os_str().is_empty() {
            statics.files = Some(BTreeMap::new());
            statics.due = true;
            return statics;
        }
        let (node, handle, of) = (node.to_owned(), handle.clone(), dir.clone());
        let looker = Manifests::start(&dir, move |seen| {
            handle.tell(Input::Manifests(Box::new(read(&of, &node, seen))))
        });
        match looker {
            Ok(looker) => statics.looker = Some(looker),
            Err(error) => {
                let why = format!("static pods stay as they are: cannot look at files: {error}");
                tracing::error!("{why}");
                statics.fault = Some(why);
            }
        }
        statics
    }

    /// What is wrong at present.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        let wrong = self.wrong.values().map(|wrong| wrong.text.clone());
        self.fault.iter().cloned().chain(wrong)
    }

    /// The pods that the files hold, with the files; of two of one name the first file's.
    fn wanted(&self) -> (BTreeMap<PodKey, Wanted>, Vec<(String, String)>) {
        let mut wanted = BTreeMap::<_, Wanted>::new();
        let mut doubled = Vec::new();
        for (file, reading) in self.files.iter().flatten() {
            let Reading::Pod(pod) = reading else {
                continue;
            };
            if let Some(Wanted { file: first, .. }) = wanted.get(&pod.key) {
                let why = format!("pod {} of {file} is that of {first} already", pod.key);
                doubled.push((file.clone(), why));
                continue;
            }
            let (file, pod) = (file.clone(), Arc::clone(pod));
            wanted.insert(pod.key.clone(), Wanted { file, pod });
        }
        (wanted, doubled)
    }

    /// The files whose pods stay as they are.
    fn unknown(&self) -> BTreeSet<&str> {
        let files = self.files.iter().flatten();
        let unknown = files.filter(|(_, reading)| !matches!(reading, Reading::Pod(_)));
        unknown.map(|(file, _)| file.as_str()).collect()
    }
}

/// A pod that a file holds.
struct Wanted {
    file: String,
    pod: Arc<StaticPod>,
}

impl Agent {
    /// Takes what the files hold now.
    pub(super) fn take_manifests(&mut self, files: Files) {
        let files = match files {
            Ok(files) => files,
            Err(why) => {
                if self.statics.fault.as_ref() != Some(&why) {
                    self.node_event(Severity::Warning, "InvalidManifest", &why);
                    self.statics.fault = Some(why);
                }
                return;
            }
        };
        self.statics.fault = None;
        self.statics
            .wrong
            .retain(|file, _| files.contains_key(file));
        for (file, reading) in &files {
            if let Reading::Broken(why) = reading
                && self.is_news(file, why, why)
            {
                self.node_event(Severity::Warning, "InvalidManifest", why);
            }
        }
        self.statics.files = Some(files);
        self.statics.due = true;
    }

    /// Ends the static pods that no file holds any more and begins those that are missing, if either the
    /// files or the room for pods may be others than before.
    pub(super) fn mind_statics(&mut self) {
        if self.statics.files.is_none() || !(self.statics.due || self.room) {
            return;
        }
        self.statics.due = false;
        let (wanted, doubled) = self.statics.wanted();
        for (file, why) in doubled {
            if self.is_news(&file, &why, &why) {
                self.node_event(Severity::Warning, "InvalidManifest", &why);
            }
        }
        self.end_unwanted(&wanted);
        for (key, Wanted { file, pod }) in wanted {
            let there = self.pods.get(&key);
            if there.is_some_and(|entry| entry.admitted.pod().is_static) {
                // It is this one, or one that has to end first.
                if there.is_some_and(|entry| *entry.uid() == pod.uid) {
                    self.statics.wrong.remove(&file);
                }
                continue;
            }
            let made = if there.is_some() {
                let message = format!("a pod {key} that was made through the API is in the way");
                Err(Refusal::new(409, "AlreadyExists", message))
            } else {
                let origin = Origin::File(file.clone());
                self.admit(Box::new(pod.object.clone()), &pod.uid, origin, false)
            };
            match made {
                Ok(_) => {
                    self.statics.wrong.remove(&file);
                }
                Err(refusal) => {
                    let why = format!("static pod of {file}: {}", refusal.message);
                    if self.is_news(&file, &why, &gist(&refusal)) {
                        self.note_refusal(&key, &refusal);
                    }
                }
            }
        }
    }

    /// Begins the end of static pods that no file holds, and notes whose file has another name now.
    fn end_unwanted(&mut self, wanted: &BTreeMap<PodKey, Wanted>) {
        let unknown = self.statics.unknown();
        // A file that is gone may be the one that is unsettled, under another name.
        let files = self.statics.files.as_ref();
        let mut all = files.into_iter().flat_map(BTreeMap::values);
        let unsettled = all.any(|reading| matches!(reading, Reading::Unsettled));
        let is_gone = |file: &str| files.is_some_and(|files| !files.contains_key(file));
        let (mut ending, mut moved) = (Vec::new(), Vec::new());
        for (key, entry) in self.pods.iter() {
            if !entry.admitted.pod().is_static || entry.record.deletion.is_some() {
                continue;
            }
            let file = entry.record.manifest.as_deref();
            match wanted.get(key) {
                Some(wanted) if wanted.pod.uid == *entry.uid() => {
                    if file != Some(&wanted.file) {
                        moved.push((key.clone(), wanted.file.clone()));
                    }
                }
                _ if file.is_some_and(|file| unknown.contains(file)) => {}
                _ if unsettled && file.is_none_or(is_gone) => {}
                _ => ending.push(key.clone()),
            }
        }
        for (key, file) in moved {
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.record.manifest = Some(file);
                entry.dirty = true;
            }
        }
        for key in ending {
            tracing::info!("static pod {key} ends: no file holds it any more");
            // It is there, and its end has not begun.
            drop(self.begin_deletion(&key, None));
        }
    }

    /// Why nobody but a file can end a pod.
    ///
    /// # Errors
    /// The pod is static.
    pub(super) fn refuse_if_static(&self, key: &PodKey) -> Result<(), Refusal> {
        let Some(entry) = self.pods.get(key) else {
            return Ok(());
        };
        if !entry.admitted.pod().is_static {
            return Ok(());
        }
        let dir = self.config.static_pod_path.display();
        let file = entry.record.manifest.as_deref().unwrap_or_default();
        let message = format!(
            "pods {:?} is forbidden: it is static, and would come back: remove {dir}/{file} to end it",
            key.name
        );
        Err(Refusal::new(403, "Forbidden", message).about("pods", &key.name))
    }

    /// Notes what is wrong with a file; whether that is not what was told of it last.
    fn is_news(&mut self, file: &str, text: &str, gist: &str) -> bool {
        let wrong = Wrong {
            text: text.to_owned(),
            gist: gist.to_owned(),
        };
        let last = self.statics.wrong.insert(file.to_owned(), wrong);
        last.is_none_or(|last| last.gist != gist)
    }
}

/// What a refusal is without its numbers.
fn gist(refusal: &Refusal) -> String {
    let causes = refusal.causes.iter();
    let causes = causes.map(|cause| format!("{} {}", cause.reason, cause.field));
    let causes: Vec<_> = causes.collect();
    format!("{} {}", refusal.reason, causes.join("; "))
}
