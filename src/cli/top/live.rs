//! The picture that goes on: keys and answers in, pictures out, until somebody has seen enough.
//!
//! Decides when to draw, never what: that is `view`'s, from what `state` keeps.

use std::io::{self, stdout};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use ratatui::crossterm::event::{self, Event as Input};

use super::keys::Key;
use super::screen::Screen;
use super::state::{Event, Model, Wish};
use super::view::{self, Look};
use super::{Args, fetch};
use crate::cli::Context;
use crate::cli::error::CliError;
use crate::exit;

/// So long may an answer lie there before it is drawn. A key is drawn at once.
const PATIENCE: Duration = Duration::from_millis(100);

/// Shows the figures until somebody ends it.
///
/// # Errors
/// A terminal that cannot be used.
pub fn run(args: &Args, context: &Context) -> Result<u8, CliError> {
    let look = Look {
        colour: AutoStream::choice(&stdout()) != ColorChoice::Never,
        unicode: is_utf8(),
        zone: context.clock.zone.clone(),
    };
    let mut screen = Screen::open().map_err(|error| {
        let what = "the terminal cannot be drawn on";
        CliError::Failed(format!("{what}: {error}; --once prints a table"))
    })?;
    let (send, events) = channel();
    let interval = Duration::from_secs(args.interval);
    let pods = fetch::start(context.global.socket.clone(), interval, send)?;
    let mut model = Model::new(context.namespace(), args.all_namespaces, args.interval);
    let start = Instant::now();
    let mut seconds = None;
    let mut news: Vec<Event> = Vec::new();
    loop {
        let size = screen.0.size()?;
        news.push(Event::Size(size.width, size.height));
        let now = start.elapsed();
        let is_next = seconds.replace(now.as_secs()) != Some(now.as_secs());
        let is_new = is_next || news.len() > 1;
        news.insert(0, Event::Now(now));
        for event in news.drain(..) {
            match model.update(event) {
                Some(Wish::Quit) => return Ok(exit::OK),
                // Without the other end nothing comes any more, and the picture says so.
                Some(Wish::Explain(name)) => drop(pods.send(name)),
                None => {}
            }
        }
        if is_new {
            screen.0.draw(|frame| view::draw(frame, &model, &look))?;
        }
        if event::poll(PATIENCE)? {
            read(&mut news)?;
        }
        news.extend(events.try_iter());
    }
}

/// The keys that lie there; more than one when somebody pastes.
fn read(news: &mut Vec<Event>) -> io::Result<()> {
    loop {
        match event::read()? {
            Input::Key(key) => news.extend(Key::of(&key).map(Event::Key)),
            Input::Resize(columns, lines) => news.push(Event::Size(columns, lines)),
            _ => {}
        }
        if !event::poll(Duration::ZERO)? {
            return Ok(());
        }
    }
}

/// Whether the terminal's text is UTF-8, by the rule of the C library.
fn is_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set = names
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    set.is_some_and(|value| {
        let value = value.to_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}
