//! Files of objects, as named with `-f`: read with bounds, every problem told with its place.
//!
//! It reads regular files, pipes and the standard input, of each no more than a manifest may be long, and of
//! all together no more than [`MAX_TOTAL`].

mod files;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use k8s_openapi::api::core::v1;

use super::Context;
use super::error::CliError;
use crate::manifest::convert::{self, Remark};
use crate::manifest::{self, Located, MAX_BYTES, Manifest, Object, Problem, Strictness};
use crate::model::{Pod, PodUid};

pub use files::Files;

/// Bytes of all files together: 64 MiB.
const MAX_TOTAL: usize = 16 * MAX_BYTES;

/// Reads all files. What cannot be read becomes a problem like any other.
pub fn read(files: &Files) -> Manifest {
    let (paths, problems) = files.expand();
    let mut all = Manifest {
        problems,
        ..Manifest::default()
    };
    let mut total = 0_usize;
    for path in &paths {
        let message = match bytes(path) {
            Ok(bytes) => {
                total = total.saturating_add(bytes.len());
                if total <= MAX_TOTAL {
                    let name = path.to_string_lossy();
                    let one = manifest::read(&name, &bytes, Strictness::Strict);
                    all.objects.extend(one.objects);
                    all.problems.extend(one.problems);
                    all.warnings.extend(one.warnings);
                    continue;
                }
                format!("is not read: all files up to it have more than {MAX_TOTAL} bytes (64 MiB)")
            }
            Err(error) => format!("cannot be read: {error}"),
        };
        all.problems.push(files::problem(path, message));
        if total > MAX_TOTAL {
            break;
        }
    }
    all
}

/// The whole content, unless that is more than a manifest may have.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        let input = io::stdin().lock();
        input.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    } else {
        let file = File::open(path)?;
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if bytes.len() > MAX_BYTES {
        let message = format!("it has more than {MAX_BYTES} bytes (4 MiB)");
        return Err(io::Error::other(message));
    }
    Ok(bytes)
}

/// A pod of the input.
pub struct InputPod<'a> {
    /// As it was written.
    pub written: &'a v1::Pod,
    /// As it is judged.
    pub pod: Pod,
    /// What was written and has no effect.
    pub notes: Vec<Remark>,
}

/// Converts a pod of the input; what cannot be converted is told with its line. Without a namespace of
/// its own it belongs to `namespace`.
///
/// # Errors
/// Every problem of the pod.
pub fn pod<'a>(
    located: &Located<Object>,
    written: &'a v1::Pod,
    namespace: &str,
) -> Result<InputPod<'a>, Vec<Problem>> {
    let meta = &written.metadata;
    let own = meta.namespace.as_deref().filter(|own| !own.is_empty());
    let namespace = own.unwrap_or(namespace);
    let name = meta.name.as_deref().unwrap_or_default();
    let fallback = convert::placeholder_uid(namespace, name).or_else(|| PodUid::new("none"));
    let Some(fallback) = fallback else {
        return Err(vec![located.problem("metadata.uid", "has no form")]);
    };
    let mut converted = convert::pod(written, &fallback);
    if !converted.problems.is_empty() {
        let problems = converted.problems.into_iter();
        let place = |remark: Remark| located.problem(&remark.field, remark.message);
        return Err(problems.map(place).collect());
    }
    namespace.clone_into(&mut converted.object.namespace);
    Ok(InputPod {
        written,
        pod: converted.object,
        notes: converted.notes,
    })
}

/// The objects of files that shall be changed on the daemon; nothing is sent of an input with problems.
///
/// # Errors
/// No file named, every problem of the input, or no object in it.
pub fn objects(files: &Files, context: &Context) -> Result<Vec<Located<Object>>, CliError> {
    if files.filename.is_empty() {
        return Err(CliError::Usage(
            "no input: name files with -f FILE (- is the standard input)".to_owned(),
        ));
    }
    let manifest = read(files);
    let mut problems = manifest.problems;
    if problems.is_empty() {
        for located in &manifest.objects {
            if let Object::Pod(written) = &located.object {
                problems.extend(
                    pod(located, written, context.namespace())
                        .err()
                        .into_iter()
                        .flatten(),
                );
            }
            problems.extend(other_namespace(located, context));
        }
    }
    if !problems.is_empty() {
        return Err(CliError::Problems(problems));
    }
    if manifest.objects.is_empty() {
        return Err(CliError::Usage(
            "there is no object in the input".to_owned(),
        ));
    }
    Ok(manifest.objects)
}

/// The same, but all of them have names: what is applied or deleted must be found again.
///
/// # Errors
/// As for `objects`, or a name is missing.
pub fn named(files: &Files, context: &Context) -> Result<Vec<Located<Object>>, CliError> {
    let objects = objects(files, context)?;
    let message = "is missing: of metadata.generateName only create makes names";
    let nameless: Vec<_> = objects
        .iter()
        .filter(|located| located.object.name().is_empty())
        .map(|located| located.problem("metadata.name", message))
        .collect();
    if nameless.is_empty() {
        return Ok(objects);
    }
    Err(CliError::Problems(nameless))
}

/// `--namespace` says where objects go, so it must not disagree with them.
fn other_namespace(located: &Located<Object>, context: &Context) -> Option<Problem> {
    let there = context.global.namespace.as_deref()?;
    let here = located.object.namespace().filter(|here| !here.is_empty())?;
    (here != there).then(|| {
        let message = format!("is {here:?}, but --namespace says {there:?}");
        located.problem("metadata.namespace", message)
    })
}
