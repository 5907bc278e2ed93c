//! Interface files: the first line is the file's name, the rest what stands in it.

use allotd::cgroup::{ControllerSet, InterfaceFile, Setting};
use allotd::units::{Limit, PageSize};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (name, content) = text.split_once('\n').unwrap_or((text, ""));
    let enabled = ControllerSet::parse(content);
    assert_eq!(ControllerSet::parse(&enabled.to_string()), enabled);
    let Ok(file) = name.parse::<InterfaceFile>() else {
        return;
    };
    assert_eq!(file.to_string().parse(), Ok(file));
    let Some(setting) = Setting::parse(file, content) else {
        return;
    };
    assert_eq!(setting.file(), file);
    // The kernel has one spelling for each value, and only that one is understood.
    let unlimited = matches!(
        setting,
        Setting::HugetlbMax(_, Limit::Max) | Setting::HugetlbRsvdMax(_, Limit::Max)
    );
    assert!(
        unlimited || setting.value() == content.trim_end(),
        "{content:?} is read as {setting}"
    );
    for page in [PageSize::FOUR_KIB, PageSize::new(1 << 16).unwrap()] {
        let kept = setting.kept(page);
        assert_eq!(kept.kept(page), kept);
        assert_eq!(Setting::parse(file, &kept.value()), Some(kept));
    }
    assert_eq!(Setting::parse(file, &setting.value()), Some(setting));
}
