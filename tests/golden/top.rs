//! The pictures of `allot top`, as a terminal shows them, in the sizes that people have.

use allotd::cli::top::keys::Key;
use allotd::cli::top::state::{Event, Model, Wish};
use allotd::cli::top::view::{Look, draw};
use allotd::report::explain::PodExplanation;
use allotd::report::top::TopReport;
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::Modifier;

use super::{check, input};

/// What a terminal of this size shows; where the cursor is stands below.
fn picture(model: &Model, (width, height): (u16, u16), unicode: bool) -> String {
    let look = Look {
        colour: true,
        unicode,
        zone: TimeZone::UTC,
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, &look)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    let mut cursor = String::new();
    for (y, line) in buffer.content.chunks(usize::from(width)).enumerate() {
        let symbols: String = line.iter().map(Cell::symbol).collect();
        text.push_str(symbols.trim_end());
        text.push('\n');
        let cells = line.iter();
        let reversed = cells.filter(|cell| cell.modifier.contains(Modifier::REVERSED));
        let reversed: String = reversed.map(Cell::symbol).collect();
        if !reversed.is_empty() {
            cursor = format!("cursor in line {}: {}\n", y + 1, reversed.trim_end());
        }
    }
    text + &cursor
}

/// A model that has seen some looks, which went up and down.
fn model(all: bool, size: (u16, u16)) -> Model {
    let mut model = Model::new("default", all, 1);
    model.update(Event::Size(size.0, size.1));
    let last: TopReport = input("top.json");
    for n in 0..30_u64 {
        let mut report = last.clone();
        report.time = report.time - jiff::SignedDuration::from_secs(30)
            + jiff::SignedDuration::from_secs(n.try_into().unwrap());
        let part = |figure: &mut Option<u64>| {
            if let Some(figure) = figure {
                *figure = *figure / 30 * ((n * 7) % 30);
            }
        };
        part(&mut report.node.used.cpu_nano);
        part(&mut report.node.used.working_set_bytes);
        for pod in &mut report.pods {
            part(&mut pod.used.cpu_nano);
            part(&mut pod.used.working_set_bytes);
            for container in &mut pod.containers {
                part(&mut container.used.cpu_nano);
                part(&mut container.used.working_set_bytes);
            }
        }
        model.update(Event::Report(Box::new(report)));
    }
    model.update(Event::Report(Box::new(last)));
    model
}

fn press(model: &mut Model, keys: &[Key]) {
    for key in keys {
        if let Some(Wish::Explain(name)) = model.update(Event::Key(*key)) {
            let mut pod: PodExplanation = input("running.json");
            // Whose it is, is not what is looked at here.
            for row in model.rows() {
                if row.pod.name == name.name {
                    pod.uid.clone_from(&row.pod.uid);
                }
            }
            model.update(Event::Explained(name, Ok(Box::new(pod))));
        }
    }
}

#[test]
fn the_table_the_pod_and_the_keys() {
    for (name, size) in [("80x24", (80, 24)), ("120x40", (120, 40))] {
        let mut model = model(size.0 > 100, size);
        check(&format!("top-{name}.txt"), &picture(&model, size, true));
        press(&mut model, &[Key::Down, Key::Enter]);
        check(&format!("top-pod-{name}.txt"), &picture(&model, size, true));
    }
    let mut small = model(false, (80, 24));
    press(&mut small, &[Key::Char('?')]);
    check("top-keys-80x24.txt", &picture(&small, (80, 24), true));
}

#[test]
fn other_orders_smaller_terminals_and_plain_letters() {
    let size = (60, 12);
    let mut model = model(true, size);
    let keys = ['e', 'm', 'r', '/', 'r', 'u', 'n'].map(Key::Char);
    press(&mut model, &keys);
    model.update(Event::Now(std::time::Duration::from_secs(7)));
    let mut told = picture(&model, size, true);
    press(
        &mut model,
        &[Key::Enter, Key::Char('n'), Key::Down, Key::Down],
    );
    model.update(Event::Failed(
        "cannot reach allotd at /run/allotd/allotd.sock".to_owned(),
    ));
    told.push_str(&picture(&model, size, false));
    told.push_str(&picture(&model, (24, 6), true));
    check("top-small.txt", &told);
}

#[test]
fn before_there_is_anything_to_see() {
    let size = (80, 8);
    let mut model = Model::new("shop", false, 2);
    let mut told = picture(&model, size, true);
    model.update(Event::Report(Box::new(input("top.json"))));
    told.push_str(&picture(&model, size, true));
    check("top-nothing.txt", &told);
}
