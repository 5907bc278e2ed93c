//! Finds the objects in the trees of a text.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::located::Located;
use super::misfit::{Misfit, closest, expected, unknown_field};
use super::object::{Kind, Object, Other, kind};
use super::openshift::ClusterResourceQuota;
use super::parse::documents;
use super::problem::{Problem, Problems};
use super::tree::{Content, Node};
use super::typed::{self, is_null};
use super::{MAX_BYTES, Manifest, Strictness};

const LIST_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "items"];

/// Reads a text: see [`super::read`].
pub(super) fn read(source: &str, bytes: &[u8], strictness: Strictness) -> Manifest {
    let mut reader = Reader {
        source,
        strictness,
        document: 1,
        objects: Vec::new(),
        problems: Problems::new(),
        warnings: Problems::new(),
    };
    match text(bytes) {
        Err((line, message)) => reader.problem(line, String::new(), message),
        Ok(text) => reader.documents(text),
    }
    Manifest {
        objects: reader.objects,
        problems: reader.problems.into_vec(source),
        warnings: reader.warnings.into_vec(source),
    }
}

/// The bytes as text, or why they are none and in which line.
fn text(bytes: &[u8]) -> Result<&str, (Option<usize>, String)> {
    if bytes.len() > MAX_BYTES {
        let message = format!(
            "has {} bytes; at most {MAX_BYTES} ({} MiB) are read",
            bytes.len(),
            MAX_BYTES >> 20
        );
        return Err((None, message));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let (is_utf8, good) = match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => return Ok(text),
        Ok(text) => (true, text.find('\0').unwrap_or_default()),
        Err(error) => (false, error.valid_up_to()),
    };
    let before = bytes.get(..good).unwrap_or_default();
    let line = before.split(|b| *b == b'\n').count();
    let what = if is_utf8 { "a zero byte" } else { "no UTF-8" };
    let message = format!("is not text: {what} at byte {good}; YAML and JSON are read as UTF-8");
    Err((Some(line), message))
}

struct Reader<'s> {
    source: &'s str,
    strictness: Strictness,
    document: usize,
    objects: Vec<Located<Object>>,
    problems: Problems,
    warnings: Problems,
}

impl Reader<'_> {
    fn documents(&mut self, text: &str) {
        let mut is_empty = true;
        for (index, document) in documents(text).into_iter().enumerate() {
            self.document = index.saturating_add(1);
            match document {
                Err(flaw) => self.problem(Some(flaw.line), String::new(), flaw.message),
                Ok(tree) if is_null(&tree) => continue,
                Ok(tree) => self.object(tree, "", None),
            }
            is_empty = false;
        }
        if is_empty {
            self.document = 1;
            let message = "holds no object: an object has apiVersion, kind and metadata.name";
            self.problem(None, String::new(), message.to_owned());
        }
    }

    /// Takes the object that a tree is, or the objects of the list it is. Items of a list such as
    /// `PodList` may leave their type to it.
    fn object(&mut self, mut tree: Node, top: &str, inherited: Option<(&str, &str)>) {
        if !matches!(tree.content, Content::Map(_)) {
            let what = "an object with apiVersion, kind and metadata";
            let message = expected(what, &tree.content);
            return self.problem(Some(tree.line), top.to_owned(), message);
        }
        let type_of_object = (
            self.type_field(
                &tree,
                top,
                "apiVersion",
                inherited.map(|(version, _)| version),
            ),
            self.type_field(&tree, top, "kind", inherited.map(|(_, kind)| kind)),
        );
        let (Some(api_version), Some(kind_name)) = type_of_object else {
            return;
        };
        let kind = match kind(&api_version, &kind_name) {
            Ok(kind) => kind,
            Err(wrong) => {
                let line = tree.line_of(wrong.field);
                return self.problem(Some(line), join(top, wrong.field), wrong.message);
            }
        };
        let object = match kind {
            Kind::List => return self.list(&mut tree, top, &api_version, &kind_name),
            Kind::Pod => self.typed(&tree, top).map(Object::Pod),
            Kind::Node => self.typed(&tree, top).map(Object::Node),
            Kind::LimitRange => self.typed(&tree, top).map(Object::LimitRange),
            Kind::ResourceQuota => self.typed(&tree, top).map(Object::ResourceQuota),
            Kind::ClusterResourceQuota => {
                self.typed(&tree, top)
                    .map(|mut quota: Box<ClusterResourceQuota>| {
                        // An item may have left them to its list.
                        quota.api_version = api_version;
                        quota.kind = kind_name;
                        Object::ClusterResourceQuota(quota)
                    })
            }
            Kind::Namespace => self.typed(&tree, top).map(Object::Namespace),
            Kind::Other => self
                .typed(&tree, top)
                .map(|value| other(api_version, kind_name, value)),
        };
        let Some(object) = object else {
            return;
        };
        if object.name().is_empty() && object.generate_name().is_empty() {
            let line = tree.line_of("metadata.name");
            let message = "is missing; every object has a name";
            self.problem(Some(line), join(top, "metadata.name"), message.to_owned());
        }
        self.objects.push(Located {
            object,
            source: self.source.to_owned(),
            document: self.document,
            top: top.to_owned(),
            tree,
        });
    }

    /// `apiVersion` or `kind` of an object.
    fn type_field(
        &mut self,
        tree: &Node,
        top: &str,
        field: &str,
        inherited: Option<&str>,
    ) -> Option<String> {
        let entry = tree.get(field).filter(|entry| !is_null(&entry.value));
        let message = match entry {
            Some(entry) => match entry.value.text() {
                Some(text) => return Some(text.to_owned()),
                None => expected("text", &entry.value.content),
            },
            None if inherited.is_some() => return inherited.map(str::to_owned),
            None => {
                let keys: Vec<&str> = tree.entries().iter().map(|e| e.key.as_str()).collect();
                match closest(field, &keys) {
                    Some(key) if key != field => format!("is missing; {key} is probably meant"),
                    _ if field == "kind" => "is missing, such as Pod".to_owned(),
                    _ => "is missing; v1 for a Pod".to_owned(),
                }
            }
        };
        let line = tree.line_of(field);
        self.problem(Some(line), join(top, field), message);
        None
    }

    fn list(&mut self, tree: &mut Node, top: &str, api_version: &str, kind: &str) {
        for entry in tree.entries() {
            if !LIST_FIELDS.contains(&entry.key.as_str()) {
                let misfit = Misfit {
                    field: Some(join(top, &entry.key)),
                    line: entry.line,
                    message: unknown_field(&entry.key, kind, &LIST_FIELDS),
                    node: 0,
                };
                self.unknown(misfit);
            }
        }
        let of_items = kind.strip_suffix("List").filter(|kind| !kind.is_empty());
        let Content::Map(entries) = &mut tree.content else {
            return;
        };
        let items = entries.iter_mut().rev().find(|entry| entry.key == "items");
        let Some(items) = items.filter(|entry| !is_null(&entry.value)) else {
            return;
        };
        let Content::List(nodes) = &mut items.value.content else {
            let message = expected("a list", &items.value.content);
            return self.problem(Some(items.line), join(top, "items"), message);
        };
        for (index, node) in std::mem::take(nodes).into_iter().enumerate() {
            let place = join(top, &format!("items[{index}]"));
            self.object(node, &place, of_items.map(|kind| (api_version, kind)));
        }
    }

    fn typed<T: DeserializeOwned>(&mut self, tree: &Node, top: &str) -> Option<T> {
        let mut reading = typed::read(tree, top);
        if self.strictness == Strictness::Strict {
            reading.wrong.append(&mut reading.unknown);
        }
        reading.wrong.sort_by_key(|misfit| misfit.line);
        for misfit in reading.wrong {
            let field = misfit.field.unwrap_or_default();
            self.problem(Some(misfit.line), field, misfit.message);
        }
        for misfit in reading.unknown {
            self.unknown(misfit);
        }
        reading.object
    }

    fn unknown(&mut self, misfit: Misfit) {
        let problem = self.at(
            Some(misfit.line),
            misfit.field.unwrap_or_default(),
            misfit.message,
        );
        match self.strictness {
            Strictness::Strict => self.problems.push(problem),
            Strictness::Warn => self.warnings.push(problem),
        }
    }

    fn problem(&mut self, line: Option<usize>, field: String, message: String) {
        let problem = self.at(line, field, message);
        self.problems.push(problem);
    }

    fn at(&self, line: Option<usize>, field: String, message: String) -> Problem {
        Problem {
            source: self.source.to_owned(),
            document: self.document,
            line,
            field,
            message,
        }
    }
}

fn other(api_version: String, kind: String, mut value: Value) -> Object {
    if let Value::Object(fields) = &mut value {
        // An item may have left them to its list.
        for (field, text) in [("apiVersion", &api_version), ("kind", &kind)] {
            let _ = fields.entry(field).or_insert_with(|| text.as_str().into());
        }
    }
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str);
    Object::Other(Box::new(Other {
        name: text("/metadata/name").unwrap_or_default().to_owned(),
        namespace: text("/metadata/namespace").map(str::to_owned),
        api_version,
        kind,
        value,
    }))
}

/// The path of a field of an object at `top`.
fn join(top: &str, field: &str) -> String {
    if top.is_empty() {
        field.to_owned()
    } else {
        format!("{top}.{field}")
    }
}
