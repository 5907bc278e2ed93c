//! Events in, model out.

use super::*;
use crate::report::top::{ContainerTop, PodTop, Use};

fn pod(name: &str, cpu: u64) -> PodTop {
    PodTop {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("u-{name}"),
        status: "Running".to_owned(),
        used: Use {
            cpu_nano: Some(cpu),
            ..Use::default()
        },
        containers: vec![ContainerTop {
            name: "c".to_owned(),
            ..ContainerTop::default()
        }],
        ..PodTop::default()
    }
}

/// The report of this second.
fn report(second: i64, pods: Vec<PodTop>) -> Event {
    Event::Report(Box::new(TopReport {
        time: jiff::Timestamp::from_second(second).unwrap(),
        pods,
        ..TopReport::default()
    }))
}

fn started(pods: Vec<PodTop>) -> Model {
    let mut model = Model::new("default", false, 1);
    model.update(Event::Size(80, 24));
    model.update(report(1, pods));
    model
}

fn press(model: &mut Model, keys: &str) -> Option<Wish> {
    let mut wish = None;
    for key in keys.chars() {
        let key = match key {
            '\n' => Key::Enter,
            '\u{1b}' => Key::Esc,
            '\u{8}' => Key::Backspace,
            c => Key::Char(c),
        };
        wish = model.update(Event::Key(key));
    }
    wish
}

fn names(model: &Model) -> Vec<String> {
    let rows = model.rows();
    rows.iter().map(|row| row.name().to_owned()).collect()
}

fn name(name: &str) -> PodName {
    PodName {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn explanation(uid: &str) -> Box<PodExplanation> {
    let text = include_str!("../../../../tests/golden/input/running.json");
    let mut pod: PodExplanation = serde_json::from_str(text).unwrap();
    uid.clone_into(&mut pod.uid);
    Box::new(pod)
}

#[test]
fn the_cursor_stays_with_its_row_until_that_is_gone() {
    let mut model = started(vec![pod("a", 3), pod("b", 2), pod("c", 1)]);
    assert_eq!(names(&model), ["a", "b", "c"]);
    press(&mut model, "j");
    assert_eq!(model.cursor, 1);
    // b is first now.
    model.update(report(2, vec![pod("a", 1), pod("b", 9), pod("c", 5)]));
    assert_eq!((names(&model)[0].as_str(), model.cursor), ("b", 0));
    press(&mut model, "n");
    assert_eq!(model.cursor, 1, "another order is no reason to leave b");
    model.update(report(3, vec![pod("a", 1), pod("c", 5)]));
    assert_eq!(model.cursor, 1, "where b was");
    model.update(report(4, vec![]));
    assert_eq!(model.cursor, 0);
    for keys in ["jjj", "kkk", "G", "g", "\n", "/x\n", "e", "r"] {
        assert_eq!(press(&mut model, keys), None, "{keys:?} on nothing");
    }
}

#[test]
fn a_cursor_that_nobody_moved_belongs_to_the_first_place() {
    let mut model = started(vec![pod("a", 3), pod("b", 2)]);
    model.update(report(2, vec![pod("a", 3), pod("b", 9)]));
    assert_eq!((names(&model)[0].as_str(), model.cursor), ("b", 0));
    press(&mut model, "jg");
    model.update(report(3, vec![pod("a", 30), pod("b", 9)]));
    assert_eq!((names(&model)[0].as_str(), model.cursor), ("a", 0));
}

#[test]
fn keys_choose_order_scope_and_rows() {
    let mut other = pod("z", 7);
    other.namespace = "other".to_owned();
    let mut model = started(vec![pod("a", 1), pod("b", 2), other]);
    assert_eq!(names(&model), ["b", "a"]);
    press(&mut model, "r");
    assert_eq!(names(&model), ["a", "b"]);
    press(&mut model, "c");
    assert_eq!(names(&model), ["b", "a"], "a new order begins as it should");
    press(&mut model, "a");
    assert_eq!(names(&model), ["z", "b", "a"]);
    press(&mut model, "e");
    assert_eq!(names(&model), ["z", "c", "b", "c", "a", "c"]);
    press(&mut model, "ee");
    assert_eq!(names(&model), ["z", "b", "a"]);
    press(&mut model, "a/B");
    assert_eq!(names(&model), ["b"]);
    press(&mut model, "q");
    assert_eq!(model.choice.filter, "Bq", "in a filter q is a letter");
    press(&mut model, "\u{8}\n");
    assert!(!model.typing);
    assert_eq!(names(&model), ["b"]);
    assert_eq!(press(&mut model, "\u{1b}"), None, "only the filter ends");
    assert_eq!(names(&model), ["b", "a"]);
    assert_eq!(press(&mut model, "\u{1b}"), Some(Wish::Quit));
    press(&mut model, "/");
    press(&mut model, &"x".repeat(1000));
    assert_eq!(model.choice.filter.len(), FILTER);
    let quit = model.update(Event::Key(Key::Interrupt));
    assert_eq!(quit, Some(Wish::Quit), "even while something is typed");
}

#[test]
fn a_pod_is_opened_followed_and_kept_when_it_goes() {
    let mut model = started(vec![pod("a", 2), pod("b", 1)]);
    assert_eq!(press(&mut model, "\n"), Some(Wish::Explain(name("a"))));
    let other = Event::Explained(name("b"), Ok(explanation("u-b")));
    model.update(other);
    let pane = |model: &Model| match &model.screen {
        Screen::Pod(pane) => (**pane).clone(),
        other => panic!("{other:?}"),
    };
    assert!(pane(&model).lines.is_empty(), "that was another pod");
    model.update(Event::Explained(name("a"), Ok(explanation("u-a"))));
    assert!(pane(&model).lines.iter().any(|line| line == "Cgroups:"));
    assert_eq!(
        pane(&model).differences,
        [
            "container app cpu.max: 60000 100000 in place of 50000 100000",
            "container app cpu.weight: nothing in place of 59",
        ]
    );
    // Asked again with each look.
    let asked = model.update(report(2, vec![pod("a", 5)]));
    assert_eq!(asked, Some(Wish::Explain(name("a"))));
    assert_eq!(pane(&model).pod.used.cpu_nano, Some(5));
    let failed = Failure::Other("no".to_owned());
    model.update(Event::Explained(name("a"), Err(failed)));
    assert_eq!(pane(&model).failure.as_deref(), Some("no"));
    assert!(!pane(&model).lines.is_empty(), "the last one is kept");
    press(&mut model, "jjk");
    assert_eq!(pane(&model).scrolled, (1, 0));
    // Another pod of that name is another pod.
    model.update(Event::Explained(name("a"), Ok(explanation("u-new"))));
    assert!(pane(&model).gone);
    let asked = model.update(report(3, vec![pod("b", 5)]));
    assert_eq!((asked, pane(&model).gone), (None, true));
    assert_eq!(pane(&model).pod.used.cpu_nano, Some(5), "as it was last");
    press(&mut model, "\u{1b}");
    assert_eq!(model.screen, Screen::Table);
}

#[test]
fn a_container_is_opened_where_its_cgroup_is_told_of() {
    let mut one = pod("a", 2);
    one.containers[0].name = "app".to_owned();
    let mut model = started(vec![one]);
    assert_eq!(press(&mut model, "ej\n"), Some(Wish::Explain(name("a"))));
    model.update(Event::Explained(name("a"), Ok(explanation("u-a"))));
    let first = |model: &Model| match &model.screen {
        Screen::Pod(pane) => pane.scrolled.0,
        other => panic!("{other:?}"),
    };
    let begin = first(&model);
    let Screen::Pod(pane) = &model.screen else {
        panic!("{:?}", model.screen);
    };
    // The end stays at the bottom, so the line is on the screen, not always at its top.
    let shown = &pane.lines[begin..];
    let cgroup = shown
        .iter()
        .position(|line| line.contains("(container app"));
    let is_shown = cgroup.is_some_and(|line| line < 14);
    assert!(begin > 0 && is_shown, "{begin} {shown:?}");
    press(&mut model, "G");
    assert_eq!(first(&model), begin, "further down there is nothing");
    press(&mut model, "k");
    model.update(Event::Explained(name("a"), Ok(explanation("u-a"))));
    assert_eq!(first(&model), begin - 1, "who reads is left alone");
}

#[test]
fn a_daemon_that_goes_is_told_of_and_forgotten_when_it_is_back() {
    let mut model = Model::new("default", false, 1);
    let at = |model: &mut Model, seconds| {
        model.update(Event::Now(Duration::from_secs(seconds)));
    };
    at(&mut model, 3);
    assert_eq!(model.overdue(), None);
    at(&mut model, 4);
    assert_eq!(model.overdue(), Some(4), "nothing came yet");
    model.update(Event::Failed("gone".to_owned()));
    assert_eq!(model.failure.as_deref(), Some("gone"));
    at(&mut model, 9);
    model.update(report(1, vec![pod("a", 1)]));
    assert_eq!((model.failure.as_deref(), model.overdue()), (None, None));
    at(&mut model, 15);
    assert_eq!(model.overdue(), Some(6));
    assert_eq!(names(&model), ["a"], "what was seen stays");
}

#[test]
fn the_same_look_is_no_new_one_and_a_held_picture_stays() {
    let mut model = started(vec![pod("a", 1)]);
    model.update(report(1, vec![pod("a", 1)]));
    let seen = |model: &Model| {
        let key = model.rows()[0].key();
        model.history.cpu(Some(&key)).unwrap().len()
    };
    assert_eq!(seen(&model), 1);
    press(&mut model, " ");
    model.update(report(2, vec![pod("a", 9)]));
    assert_eq!(seen(&model), 1);
    assert_eq!(model.rows()[0].used().cpu_nano, Some(1));
    press(&mut model, " ");
    model.update(report(3, vec![pod("a", 9)]));
    assert_eq!(seen(&model), 2);
}
