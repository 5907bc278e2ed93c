//! The terminal while a picture is on it, and as it was before once there is none.
//!
//! However `allot` ends, it leaves the terminal as it found it: at the end of its owner, in a panic, and
//! at a signal that ends it, which a thread waits for because nothing else may happen in a handler.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::Once;
use std::thread;

use nix::sys::signal::{SigSet, Signal, raise};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Signals that end a program, unless it knows better.
const ENDING: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// A terminal that is drawn on.
#[derive(Debug)]
pub struct Screen(pub Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    /// Takes the terminal. Threads that are started later leave the signals to the one that is started
    /// here; so it must come before them.
    ///
    /// # Errors
    /// It is none, or it cannot be set.
    pub fn open() -> io::Result<Self> {
        leave_at_signals()?;
        restore_in_panic();
        enable_raw_mode()?;
        let opened = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match opened {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Twice does no harm. There is nobody to tell of an error.
fn restore() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

fn restore_in_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// Ends as the signal would have it, but with the terminal restored.
fn leave_at_signals() -> io::Result<()> {
    let signals = SigSet::from_iter(ENDING);
    signals.thread_block()?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let Ok(signal) = signals.wait() else {
                return;
            };
            restore();
            let _ = signals.thread_unblock();
            let _ = raise(signal);
        })?;
    Ok(())
}
