//! `allot get -w`: a list, then a line for each change of it, as `kubectl` prints them.
//!
//! The list says up to which revision it goes, and the changes follow from there, so none is left out. Where
//! changes are no longer kept it says so and ends; it never goes on with a gap.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::Value;

use super::{Args, Output, name, place, print, typed};
use crate::cli::Context;
use crate::cli::client::Client;
use crate::cli::error::CliError;
use crate::cli::kinds::Chosen;
use crate::cli::render::Clock;
use crate::cli::tables::{self, Ruler, Shape};
use crate::cli::target::Target;
use crate::model::Kind;

/// The longest event that is read: an object has at most 1 MiB.
const MAX_EVENT: usize = 8 << 20;
/// The pause before a watch that the daemon ended is taken up again.
const PAUSE: Duration = Duration::from_secs(1);

/// Prints the objects that are there, then those that change; it ends with the daemon.
///
/// # Errors
/// Several kinds or names, no daemon, changes that are no longer kept, or output that cannot be written.
pub(super) fn run(
    args: &Args,
    kinds: &Chosen,
    context: &Context,
    client: &Client,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let usage = |what: &str| CliError::Usage(format!("--watch follows {what}"));
    let kind = kinds.single().ok_or_else(|| usage("one kind"))?;
    if !kind.is_watched() {
        return Err(usage(&format!("no {}", kind.plural)));
    }
    let mut namespace = args.objects.namespace(context);
    let mut chosen = None;
    if let Some((text, more)) = args.objects.names.split_first() {
        if !more.is_empty() {
            return Err(usage("one object or all"));
        }
        let (own, name) = place(kind, text, context)?;
        namespace = own;
        chosen = Some(format!("metadata.name={name}"));
    }
    let mut target = Target::kind(kind, namespace);
    if let Some(chosen) = &chosen {
        target = target.with("fieldSelector", chosen);
    }
    let list: Value = client.get(&target)?;
    let items = list.get("items").and_then(Value::as_array);
    let mut printer = Printer {
        kind,
        args,
        shape: args.shape(kinds),
        ruler: Ruler::default(),
        has_begun: false,
        revision: revision(&list).unwrap_or_default(),
    };
    printer.list(items.map_or(&[], Vec::as_slice), out)?;
    out.flush()?;
    loop {
        let target = target
            .clone()
            .with("watch", "true")
            .with("resourceVersion", &printer.revision);
        let mut lines = Lines::default();
        let mut failed = None;
        let streamed = client.stream(&target, &mut |piece| {
            let told = lines
                .take(piece)
                .and_then(|events| printer.events(&events, out));
            told.and_then(|()| Ok(out.flush()?)).map_err(|error| {
                failed = Some(error);
                io::Error::other("the watch is over")
            })
        });
        match failed {
            Some(error) => return Err(error),
            // The daemon ends each watch after a while; where it ends itself, the next one fails.
            None => streamed?,
        }
        std::thread::sleep(PAUSE);
    }
}

/// The revision of a list or an object.
fn revision(object: &Value) -> Option<String> {
    let revision = object.pointer("/metadata/resourceVersion")?;
    revision.as_str().map(str::to_owned)
}

struct Printer<'a> {
    kind: Kind,
    args: &'a Args,
    shape: Shape,
    ruler: Ruler,
    has_begun: bool,
    /// Up to here everything is printed.
    revision: String,
}

impl Printer<'_> {
    fn list(&mut self, items: &[Value], out: &mut dyn Write) -> Result<(), CliError> {
        let now = Clock::system().now;
        let shape = self.shape;
        for item in items {
            self.ruler.mind(&tables::row(self.kind, item, shape, now));
        }
        items.iter().try_for_each(|item| self.object(item, out))
    }

    fn events(&mut self, events: &[Value], out: &mut dyn Write) -> Result<(), CliError> {
        for event in events {
            let object = event.get("object").unwrap_or(&Value::Null);
            match event.get("type").and_then(Value::as_str) {
                Some("ADDED" | "MODIFIED" | "DELETED") => self.object(object, out)?,
                Some("ERROR") => {
                    let status = serde_json::from_value(object.clone()).unwrap_or_default();
                    return Err(CliError::Refused(Box::new(status)));
                }
                _ => {}
            }
            if let Some(revision) = revision(object) {
                self.revision = revision;
            }
        }
        Ok(())
    }

    fn object(&mut self, object: &Value, out: &mut dyn Write) -> Result<(), CliError> {
        match self.args.output {
            Output::Table | Output::Wide => {
                let shape = self.shape;
                if !self.has_begun && !shape.no_headers {
                    let heads = tables::heads(self.kind, shape);
                    writeln!(out, "{}", self.ruler.line(&heads))?;
                }
                let row = tables::row(self.kind, object, shape, Clock::system().now);
                writeln!(out, "{}", self.ruler.line(&row))?;
            }
            Output::Name => writeln!(out, "{}", name(self.kind, object))?,
            Output::Json | Output::Yaml => {
                if self.has_begun && self.args.output == Output::Yaml {
                    writeln!(out, "---")?;
                }
                let object = typed(object.clone(), self.kind);
                print(self.args.output, &object, out)?;
            }
        }
        self.has_begun = true;
        Ok(())
    }
}

/// Events that come in pieces.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The events that one more piece completes.
    fn take(&mut self, piece: &[u8]) -> Result<Vec<Value>, CliError> {
        self.0.extend_from_slice(piece);
        let end = self.0.iter().rposition(|byte| *byte == b'\n');
        let rest = self.0.split_off(end.map_or(0, |end| end.saturating_add(1)));
        let whole = std::mem::replace(&mut self.0, rest);
        if self.0.len() > MAX_EVENT {
            let message = format!("the daemon sent an event of more than {MAX_EVENT} bytes");
            return Err(CliError::Failed(message));
        }
        let lines = whole.split(|byte| *byte == b'\n');
        let events = lines.filter(|line| !line.is_empty());
        events
            .map(|line| {
                serde_json::from_slice(line).map_err(|error| {
                    CliError::Failed(format!("the daemon sent an unusable event: {error}"))
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text = b"{\"type\":\"ADDED\"}\n\n{\"type\":\"DELETED\"}\n";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let events: Vec<_> = text
                .chunks(size)
                .flat_map(|piece| lines.take(piece).unwrap())
                .map(|event| event["type"].clone())
                .collect();
            assert_eq!(events, ["ADDED", "DELETED"], "{size}");
        }
        assert!(Lines::default().take(b"no event\n").is_err());
        let endless = vec![b'a'; MAX_EVENT + 1];
        assert!(Lines::default().take(&endless).is_err());
    }
}
