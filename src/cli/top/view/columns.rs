//! Which columns have room, and how wide they are.

use crate::cli::top::rows::Sort;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Column {
    Namespace,
    Name,
    Cpu,
    CpuBar,
    CpuCurve,
    CpuLimit,
    Throttled,
    Memory,
    MemoryBar,
    MemoryCurve,
    MemoryMax,
    Tasks,
    Disk,
    Pressure,
    Marks,
}

use Column::{
    Cpu, CpuBar, CpuCurve, CpuLimit, Disk, Marks, Memory, MemoryBar, MemoryCurve, MemoryMax, Name,
    Namespace, Pressure, Tasks, Throttled,
};

/// The columns from left to right: head, order it stands for, width at the least.
pub const COLUMNS: [(Column, &str, Option<Sort>, usize); 15] = [
    (Namespace, "NAMESPACE", None, 9),
    (Name, "NAME", Some(Sort::Name), 13),
    (Cpu, "CPU", Some(Sort::Cpu), 6),
    (CpuBar, "of limit", None, 9),
    (CpuLimit, "LIMIT", None, 6),
    (CpuCurve, "", None, 10),
    (Throttled, "THR", Some(Sort::Throttled), 4),
    (Memory, "MEM", Some(Sort::Memory), 6),
    (MemoryBar, "of max", None, 9),
    (MemoryMax, "MAX", None, 6),
    (MemoryCurve, "", None, 10),
    (Tasks, "TASK", Some(Sort::Tasks), 5),
    (Disk, "DISK", Some(Sort::Disk), 6),
    (Pressure, "PSI", Some(Sort::Pressure), 4),
    (Marks, "MARKS", Some(Sort::Marks), 6),
];

/// Which columns are needed most.
const NEEDED: [Column; 15] = [
    Name,
    Cpu,
    Memory,
    CpuBar,
    MemoryBar,
    Namespace,
    Marks,
    Tasks,
    Throttled,
    Pressure,
    Disk,
    CpuCurve,
    MemoryCurve,
    CpuLimit,
    MemoryMax,
];

/// The columns that have room, with their widths; between two stands a blank.
pub fn layout(width: usize, all_namespaces: bool, sort: Sort) -> Vec<(Column, usize)> {
    let sorted = COLUMNS
        .iter()
        .find(|(_, _, by, _)| *by == Some(sort))
        .map(|(column, ..)| *column);
    let least = |column: Column| {
        let found = COLUMNS.iter().find(|(one, ..)| *one == column);
        found.map_or(0, |(.., least)| *least)
    };
    let mut chosen = vec![Name];
    let mut left = width.saturating_sub(least(Name));
    // What rows are sorted by is shown before all else.
    for column in sorted.into_iter().chain(NEEDED) {
        let needs = least(column).saturating_add(1);
        let is_wanted = column != Namespace || all_namespaces;
        if !chosen.contains(&column) && is_wanted && needs <= left {
            chosen.push(column);
            left = left.saturating_sub(needs);
        }
    }
    let grow = |column, least: usize, left: &mut usize| {
        let most: usize = match column {
            Name => 32,
            Namespace => 20,
            Marks => 14,
            CpuBar | MemoryBar => 16,
            CpuCurve | MemoryCurve => 40,
            _ => least,
        };
        let more = most.saturating_sub(least).min(*left);
        *left = left.saturating_sub(more);
        least.saturating_add(more)
    };
    let mut widths = Vec::new();
    for column in NEEDED {
        if chosen.contains(&column) {
            let least = least(column);
            // Two of a kind share what is left.
            let mut part = match column {
                CpuBar | CpuCurve => left / 2,
                _ => left,
            };
            let before = part;
            let width = grow(column, least, &mut part);
            left = left.saturating_sub(before.saturating_sub(part));
            widths.push((column, width));
        }
    }
    let ordered = COLUMNS.iter().filter_map(|(column, ..)| {
        let found = widths.iter().find(|(one, _)| one == column);
        found.copied()
    });
    let mut ordered: Vec<_> = ordered.collect();
    if width < least(Name) {
        ordered = vec![(Name, width)];
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(width: usize, all: bool, sort: Sort) -> String {
        let layout = layout(width, all, sort);
        let names: Vec<_> = layout
            .iter()
            .map(|(column, width)| format!("{column:?}{width}"))
            .collect();
        names.join(" ")
    }

    #[test]
    fn the_least_needed_column_goes_first() {
        for (width, all, sort, expected) in [
            (5, true, Sort::Cpu, "Name5"),
            (30, true, Sort::Cpu, "Name16 Cpu6 Memory6"),
            (30, true, Sort::Disk, "Name16 Cpu6 Disk6"),
            (
                80,
                false,
                Sort::Cpu,
                "Name16 Cpu6 CpuBar9 Throttled4 Memory6 MemoryBar9 Tasks5 Disk6 Pressure4 Marks6",
            ),
            (
                80,
                true,
                Sort::Cpu,
                "Namespace9 Name13 Cpu6 CpuBar9 Throttled4 Memory6 MemoryBar9 Tasks5 Pressure4 Marks6",
            ),
        ] {
            assert_eq!(names(width, all, sort), expected, "{width}");
        }
        let wide = names(200, true, Sort::Cpu);
        assert_eq!(wide.split(' ').count(), COLUMNS.len(), "{wide}");
    }

    #[test]
    fn columns_never_take_more_than_there_is() {
        for width in 0..300 {
            for all in [false, true] {
                let layout = layout(width, all, Sort::Marks);
                let taken: usize = layout.iter().map(|(_, width)| width + 1).sum();
                assert!(taken.saturating_sub(1) <= width, "{width}: {layout:?}");
            }
        }
    }
}
