//! Objects laid out as a table, with the columns of `report::table`.

use jiff::Timestamp;
use serde_json::Value;

use super::kinds::prefix;
use super::render::Page;
use crate::model::Kind;
use crate::report::table::{cells, columns};

/// How much a table shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// The columns of `-o wide` too.
    pub wide: bool,
    /// The namespace in front, where the kind has any.
    pub namespace: bool,
    /// No line of column names.
    pub no_headers: bool,
    /// How objects are named.
    pub names: Names,
}

/// How objects are named in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// `web`
    #[default]
    Bare,
    /// `pod/web`, where several kinds meet.
    WithKind,
}

/// A table of objects of one kind.
pub fn page<'a>(
    kind: Kind,
    objects: impl IntoIterator<Item = &'a Value>,
    shape: Shape,
    now: Timestamp,
) -> Page {
    let mut page = Page::table();
    if !shape.no_headers {
        page.texts(0, &heads(kind, shape));
    }
    for object in objects {
        page.texts(0, &row(kind, object, shape, now));
    }
    page
}

/// The names of the columns that are shown.
pub fn heads(kind: Kind, shape: Shape) -> Vec<String> {
    let names = columns(kind)
        .iter()
        .map(|column| column.name.to_uppercase());
    shown(kind, "NAMESPACE", names.collect(), shape)
}

/// The cells of an object that are shown.
pub fn row(kind: Kind, object: &Value, shape: Shape, now: Timestamp) -> Vec<String> {
    let namespace = object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    let mut cells = cells(kind, object, now);
    if shape.names == Names::WithKind {
        let names = columns(kind).iter().zip(&mut cells);
        for (_, cell) in names.filter(|(column, _)| column.name == "Name") {
            *cell = format!("{}/{cell}", prefix(kind));
        }
    }
    shown(kind, namespace.unwrap_or_default(), cells, shape)
}

fn shown(kind: Kind, namespace: &str, cells: Vec<String>, shape: Shape) -> Vec<String> {
    let namespace = (shape.namespace && kind.namespaced).then(|| namespace.to_owned());
    let columns = columns(kind).iter();
    let shown = columns.map(|column| shape.wide || !column.wide);
    let cells = cells.into_iter().zip(shown);
    let cells = cells.filter_map(|(cell, shown)| shown.then_some(cell));
    namespace.into_iter().chain(cells).collect()
}

/// Lines that are printed one by one and yet stand below each other: a column is as wide as its widest cell
/// so far.
#[derive(Clone, Debug, Default)]
pub struct Ruler(Vec<String>);

impl Ruler {
    /// Minds the width of these cells.
    pub fn mind(&mut self, cells: &[String]) {
        self.0.resize(self.0.len().max(cells.len()), String::new());
        for (widest, cell) in self.0.iter_mut().zip(cells) {
            if cell.chars().count() > widest.chars().count() {
                widest.clone_from(cell);
            }
        }
    }

    /// One line.
    pub fn line(&mut self, cells: &[String]) -> String {
        self.mind(cells);
        let mut page = Page::table();
        page.texts(0, &self.0);
        page.texts(0, cells);
        let text = page.to_string();
        text.lines().last().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_below_each_other_as_far_as_they_can() {
        let cells = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut ruler = Ruler::default();
        assert_eq!(ruler.line(&cells(&["NAME", "AGE"])), "NAME   AGE");
        assert_eq!(ruler.line(&cells(&["longer", "1s"])), "longer   1s");
        assert_eq!(ruler.line(&cells(&["a", "2s"])), "a        2s");
        assert_eq!(ruler.line(&cells(&["b\n", "3s"])), "b\\n      3s");
    }
}
