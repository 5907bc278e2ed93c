//! The terminal while a picture is on it, and as it was before once there is none.
//!
//! However `allot` ends, it leaves the terminal as it found it: at the end of its owner, in a panic, and
//! at a signal that ends it, which a thread waits for because nothing else may happen in a handler.

use std::io::{self, Stdout, StdoutLock, stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

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

/// So long may a terminal take that hangs.
const PATIENCE: Duration = Duration::from_secs(1);

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
        TAKEN.store(true, Ordering::SeqCst);
        if let Err(error) = enable_raw_mode() {
            TAKEN.store(false, Ordering::SeqCst);
            return Err(error);
        }
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

/// Whether the terminal is drawn on. A second return from it would move the cursor of the first.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// There is nobody to tell of an error.
fn restore() {
    restore_by(&mut stdout().lock());
}

fn restore_by(out: &mut StdoutLock<'_>) {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(out, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
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

/// Ends as the signal would have it, but with the terminal restored, unless it takes nothing any more.
fn leave_at_signals() -> io::Result<()> {
    let signals = SigSet::from_iter(ENDING);
    signals.thread_block()?;
    let wait = move || {
        let Ok(signal) = signals.wait() else {
            return;
        };
        let (send, restored) = channel();
        let restoring = thread::Builder::new().spawn(move || {
            // Kept to the end: what is drawn now would be seen beside the prompt.
            let mut out = stdout().lock();
            restore_by(&mut out);
            let _ = send.send(());
            thread::park();
        });
        if restoring.is_ok() {
            let _ = restored.recv_timeout(PATIENCE);
        }
        let _ = signals.thread_unblock();
        let _ = raise(signal);
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)?;
    Ok(())
}
