//! Keys as the model knows them: no more of a keyboard than it needs.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Key {
    Char(char),
    Enter,
    Esc,
    /// Ctrl-C.
    Interrupt,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

impl Key {
    /// What the terminal tells of; `None` for a key that means nothing here.
    pub fn of(event: &KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let with = |modifier| event.modifiers.contains(modifier);
        Some(match event.code {
            KeyCode::Char('c' | 'C') if with(KeyModifiers::CONTROL) => Self::Interrupt,
            KeyCode::Char('u' | 'b') if with(KeyModifiers::CONTROL) => Self::PageUp,
            KeyCode::Char('d' | 'f') if with(KeyModifiers::CONTROL) => Self::PageDown,
            KeyCode::Char(_) if with(KeyModifiers::CONTROL) || with(KeyModifiers::ALT) => {
                return None;
            }
            KeyCode::Char(c) => Self::Char(c),
            KeyCode::Enter => Self::Enter,
            KeyCode::Esc => Self::Esc,
            KeyCode::Backspace => Self::Backspace,
            KeyCode::Up => Self::Up,
            KeyCode::Down => Self::Down,
            KeyCode::Left => Self::Left,
            KeyCode::Right => Self::Right,
            KeyCode::PageUp => Self::PageUp,
            KeyCode::PageDown => Self::PageDown,
            KeyCode::Home => Self::Home,
            KeyCode::End => Self::End,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_c_end_it_and_other_chords_are_no_letters() {
        let key = |c, modifiers| Key::of(&KeyEvent::new(KeyCode::Char(c), modifiers));
        assert_eq!(key('c', KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(key('c', KeyModifiers::NONE), Some(Key::Char('c')));
        assert_eq!(key('N', KeyModifiers::SHIFT), Some(Key::Char('N')));
        assert_eq!(key('q', KeyModifiers::CONTROL), None);
        assert_eq!(key('q', KeyModifiers::ALT), None);
    }
}
