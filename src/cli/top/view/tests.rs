//! Pictures of anything at any size; how they look is in `tests/golden`.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use ratatui::style::Color;

use super::*;
use crate::cli::top::keys::Key;
use crate::cli::top::state::Event;
use crate::report::explain::PodExplanation;
use crate::report::top::TopReport;

fn look(colour: bool, unicode: bool) -> Look {
    Look {
        colour,
        unicode,
        zone: TimeZone::UTC,
    }
}

fn report() -> TopReport {
    let text = include_str!("../../../../tests/golden/input/top.json");
    serde_json::from_str(text).unwrap()
}

fn picture(model: &Model, width: u16, height: u16, look: &Look) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    paint(&mut buffer, area, model, look);
    buffer
}

fn text(buffer: &Buffer) -> String {
    let cells = buffer.content.iter();
    cells.map(ratatui::buffer::Cell::symbol).collect()
}

#[test]
fn without_colour_there_is_none() {
    let mut model = Model::new("default", true, 1);
    model.update(Event::Report(Box::new(report())));
    for (colour, expected) in [(true, true), (false, false)] {
        let buffer = picture(&model, 120, 40, &look(colour, true));
        let is_coloured = buffer.content.iter().any(|cell| cell.fg != Color::Reset);
        assert_eq!(is_coloured, expected);
        assert!(buffer.content.iter().all(|cell| cell.bg == Color::Reset));
    }
}

#[test]
fn without_unicode_there_is_only_ascii() {
    let mut model = Model::new("default", true, 1);
    model.update(Event::Report(Box::new(report())));
    for keys in ["", "e", "\n", "?"] {
        for key in keys.chars() {
            let key = if key == '\n' {
                Key::Enter
            } else {
                Key::Char(key)
            };
            model.update(Event::Key(key));
        }
        let text = text(&picture(&model, 120, 40, &look(true, false)));
        assert!(text.is_ascii(), "{keys:?}: {text}");
    }
}

/// Names that a daemon would never have.
#[test]
fn hostile_names_drive_nothing() {
    let mut hostile = report();
    let evil = "\u{1b}]0;x\u{7}\u{202e}\n\t\u{9b}2J";
    for pod in &mut hostile.pods {
        for text in [&mut pod.name, &mut pod.namespace, &mut pod.status] {
            text.insert_str(0, evil);
        }
        pod.unenforced = Some(evil.to_owned());
        for container in &mut pod.containers {
            container.name.insert_str(0, evil);
            container.state.insert_str(0, evil);
        }
    }
    evil.clone_into(&mut hostile.node.name);
    hostile.node.conditions = vec![evil.to_owned()];
    let mut model = Model::new(evil, true, 1);
    model.update(Event::Report(Box::new(hostile)));
    let wrong = |c: char| c.is_control() || c == '\u{202e}';
    for keys in [
        &[][..],
        &[Key::Enter],
        &[Key::Esc, Key::Char('/'), Key::Char('\u{202e}')],
    ] {
        for key in keys {
            model.update(Event::Key(*key));
        }
        model.update(Event::Failed(evil.to_owned()));
        let text = text(&picture(&model, 200, 40, &look(true, true)));
        assert!(!text.contains(wrong), "{text:?}");
        assert!(text.contains("\\u{1b}]0;x\\u{7}\\u{202e}"), "{text}");
    }
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        8 => "[ -~]".prop_map(|text| Key::Char(text.chars().next().unwrap_or(' '))),
        1 => Just(Key::Enter),
        1 => Just(Key::Esc),
        1 => Just(Key::Backspace),
        1 => Just(Key::Up),
        2 => Just(Key::Down),
        1 => Just(Key::Left),
        1 => Just(Key::Right),
        1 => Just(Key::PageUp),
        1 => Just(Key::PageDown),
        1 => Just(Key::Home),
        1 => Just(Key::End),
    ]
}

/// The report with other figures, some of them absent.
fn scrambled(mut seed: u64) -> TopReport {
    fn scramble(value: &mut serde_json::Value, seed: &mut u64) {
        match value {
            serde_json::Value::Number(n) if n.as_u64().is_some() => {
                *seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(99);
                // Some figures are no more than 32 bits.
                let figure = match (*seed >> 33) % 5 {
                    0 => 0,
                    1 => u64::from(u32::MAX),
                    _ => *seed >> 33,
                };
                *value = figure.into();
            }
            serde_json::Value::Array(items) => {
                let keep = usize::try_from(*seed % 7).unwrap();
                items.truncate(keep.max(1));
                for item in items {
                    scramble(item, seed);
                }
            }
            serde_json::Value::Object(fields) => {
                fields.retain(|name, _| {
                    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(7);
                    *seed >> 61 > 0 || matches!(name.as_str(), "pods" | "node" | "time")
                });
                for field in fields.values_mut() {
                    scramble(field, seed);
                }
            }
            _ => {}
        }
    }
    let mut value = serde_json::to_value(report()).unwrap();
    scramble(&mut value, &mut seed);
    serde_json::from_value(value).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Any keys, any figures, any size, pods that come and go: there is a picture.
    #[test]
    fn there_is_always_a_picture(
        steps in prop::collection::vec((key(), any::<u64>(), 0_u16..140, 0_u16..50), 1..40),
        unicode in any::<bool>(),
    ) {
        let mut model = Model::new("default", false, 1);
        let explanation: PodExplanation =
            serde_json::from_str(include_str!("../../../../tests/golden/input/running.json")).unwrap();
        for (key, seed, width, height) in steps {
            model.update(Event::Size(width, height));
            match model.update(Event::Key(key)) {
                Some(crate::cli::top::state::Wish::Explain(name)) => {
                    let mut explanation = explanation.clone();
                    "u-frontend".clone_into(&mut explanation.uid);
                    model.update(Event::Explained(name, Ok(Box::new(explanation))));
                }
                _ if seed % 3 == 0 => {
                    model.update(Event::Report(Box::new(scrambled(seed))));
                }
                _ if seed % 11 == 1 => {
                    model.update(Event::Failed("cannot reach allotd".to_owned()));
                }
                _ => {}
            }
            let buffer = picture(&model, width, height, &look(true, unicode));
            prop_assert_eq!(buffer.area.width, width);
        }
        for (width, height) in [(1, 1), (2, 1), (1, 30), (200, 1), (3, 3)] {
            picture(&model, width, height, &look(true, unicode));
        }
    }
}
