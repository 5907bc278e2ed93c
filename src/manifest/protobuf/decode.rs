//! Messages into JSON, by the tables of [`super::schema`].
//!
//! Decides how a value is written in JSON; must never leave out what a table does not know.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use super::super::build::MAX_NODES;
use super::super::place::Place;
use super::Unreadable;
use super::schema::{
    Field, IntOrString, Message, Quantity, Shape, Time, Type, TypeMeta, message_of,
};
use super::wire::{Datum, Wire};

/// What a body begins with.
const MAGIC: &[u8] = b"k8s\0";

type Result<T> = std::result::Result<T, Unreadable>;

/// The object of a body.
pub(super) fn object(bytes: &[u8]) -> Result<Value> {
    let top = Place::Top("");
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(wrong(
            0,
            &top,
            "does not begin with \"k8s\" and a zero byte",
        ));
    };
    let envelope = Envelope::read(Wire::new(rest, MAGIC.len()))?;
    let Some(raw) = envelope.raw else {
        return Err(wrong(bytes.len(), &top, "ends before the object"));
    };
    let message = message_of(&envelope.api_version, &envelope.kind).ok_or_else(|| {
        let (api_version, kind) = (envelope.api_version.clone(), envelope.kind.clone());
        Unreadable::Kind { api_version, kind }
    })?;
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), json!(envelope.api_version));
    fields.insert("kind".to_owned(), json!(envelope.kind));
    let mut decoder = Decoder { left: MAX_NODES };
    decoder.message(message, raw, &top, &mut fields)?;
    Ok(Value::Object(fields))
}

/// `runtime.Unknown`: what the object is, and its bytes.
struct Envelope<'b> {
    api_version: String,
    kind: String,
    raw: Option<Wire<'b>>,
}

impl<'b> Envelope<'b> {
    fn read(mut wire: Wire<'b>) -> Result<Self> {
        let top = Place::Top("");
        let mut envelope = Self {
            api_version: String::new(),
            kind: String::new(),
            raw: None,
        };
        while let Some((at, number, datum)) = field(&mut wire, &top)? {
            match number {
                1 => {
                    let mut decoder = Decoder { left: 2 };
                    let told = decoder.parts(&TypeMeta, bytes(at, datum, &top)?, &top)?;
                    let word = |name| said(&told, name).unwrap_or_default().to_owned();
                    (envelope.api_version, envelope.kind) = (word("apiVersion"), word("kind"));
                }
                2 => envelope.raw = Some(bytes(at, datum, &top)?),
                // How the bytes are packed; Kubernetes writes nothing here.
                3 | 4 => {
                    let packed = text(at, datum, &top)?;
                    if !(packed.is_empty() || packed == super::MEDIA_TYPE) {
                        let message = format!("the object is packed as {packed:?}, not as it is");
                        return Err(wrong(at, &top, message));
                    }
                }
                _ => return Err(unknown(at, number, "Unknown", &top)),
            }
        }
        Ok(envelope)
    }
}

struct Decoder {
    /// So many values more are read.
    left: usize,
}

impl Decoder {
    fn message(
        &mut self,
        message: &Message,
        mut wire: Wire<'_>,
        place: &Place<'_>,
        into: &mut Map<String, Value>,
    ) -> Result<()> {
        while let Some((at, number, datum)) = field(&mut wire, place)? {
            let field = message
                .field(number)
                .ok_or_else(|| unknown(at, number, message.name, place))?;
            self.field(field, (at, datum), place, into)?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field,
        (at, datum): (usize, Datum<'_>),
        parent: &Place<'_>,
        into: &mut Map<String, Value>,
    ) -> Result<()> {
        let place = Place::Field(parent, field.name);
        match field.shape {
            Shape::Skipped => {}
            Shape::Inline(message) => {
                self.message(message, bytes(at, datum, parent)?, parent, into)?;
            }
            Shape::One(of) | Shape::Said(of) => {
                let value = self.value(of, at, datum, &place)?;
                if matches!(field.shape, Shape::One(_)) && is_zero(&value) {
                    return Ok(());
                }
                if into.insert(field.name.to_owned(), value).is_some() {
                    return Err(wrong(at, &place, "is given twice"));
                }
            }
            Shape::List(of) => {
                let list = into.entry(field.name).or_insert_with(|| json!([]));
                if let Value::Array(items) = list {
                    let place = Place::Item(&place, items.len());
                    items.push(self.value(of, at, datum, &place)?);
                }
            }
            Shape::Map(of) => {
                let map = into.entry(field.name).or_insert_with(|| json!({}));
                if let Value::Object(entries) = map {
                    self.entry(of, bytes(at, datum, &place)?, &place, entries)?;
                }
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        of: Type,
        mut wire: Wire<'_>,
        place: &Place<'_>,
        into: &mut Map<String, Value>,
    ) -> Result<()> {
        let start = wire.at();
        let (mut key, mut value) = ("", None);
        while let Some((at, number, datum)) = field(&mut wire, place)? {
            match number {
                1 => key = text(at, datum, place)?,
                2 => value = Some((at, datum)),
                _ => return Err(unknown(at, number, "a map", place)),
            }
        }
        let place = Place::Key(place, key);
        // What is left out is empty.
        let (at, datum) = value.unwrap_or((start, Datum::Bytes(Wire::new(&[], start))));
        let value = self.value(of, at, datum, &place)?;
        if into.insert(key.to_owned(), value).is_some() {
            return Err(wrong(start, &place, "is given twice"));
        }
        Ok(())
    }

    fn value(&mut self, of: Type, at: usize, datum: Datum<'_>, place: &Place<'_>) -> Result<Value> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            let message = format!("the object holds more than {MAX_NODES} values");
            wrong(at, place, message)
        })?;
        match of {
            Type::Text => Ok(json!(text(at, datum, place)?)),
            Type::Int => Ok(json!(number(at, datum, place)?)),
            Type::Bool => Ok(json!(number(at, datum, place)? != 0)),
            Type::Bytes => {
                let bytes = ByteString(bytes(at, datum, place)?.bytes().to_vec());
                serde_json::to_value(bytes).map_err(|error| wrong(at, place, error.to_string()))
            }
            Type::Quantity => {
                let parts = self.parts(&Quantity, bytes(at, datum, place)?, place)?;
                Ok(json!(said(&parts, "string").unwrap_or("0")))
            }
            Type::IntOrText => {
                let parts = self.parts(&IntOrString, bytes(at, datum, place)?, place)?;
                match int(&parts, "type") {
                    0 => Ok(json!(int(&parts, "intVal"))),
                    1 => Ok(json!(said(&parts, "strVal").unwrap_or_default())),
                    other => {
                        let message =
                            format!("is of type {other}: 0, a number, or 1, a text, is right");
                        Err(wrong(at, place, message))
                    }
                }
            }
            Type::Time => {
                let wire = bytes(at, datum, place)?;
                if wire.bytes().is_empty() {
                    return Ok(Value::Null);
                }
                let parts = self.parts(&Time, wire, place)?;
                // To the second: what Kubernetes' own JSON says of such a time.
                let time = Timestamp::from_second(int(&parts, "seconds"))
                    .map_err(|error| wrong(at, place, error.to_string()))?;
                Ok(json!(time.to_string()))
            }
            Type::Message(message) => {
                let parts = self.parts(message, bytes(at, datum, place)?, place)?;
                Ok(Value::Object(parts))
            }
        }
    }

    fn parts(
        &mut self,
        message: &Message,
        wire: Wire<'_>,
        place: &Place<'_>,
    ) -> Result<Map<String, Value>> {
        let mut fields = Map::new();
        self.message(message, wire, place, &mut fields)?;
        Ok(fields)
    }
}

fn said<'f>(fields: &'f Map<String, Value>, name: &str) -> Option<&'f str> {
    fields.get(name).and_then(Value::as_str)
}

fn int(fields: &Map<String, Value>, name: &str) -> i64 {
    fields.get(name).and_then(Value::as_i64).unwrap_or(0)
}

/// Whether a value is what Kubernetes' encoders write where nothing was said.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_i64() == Some(0),
        Value::String(value) => value.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn field<'b>(wire: &mut Wire<'b>, place: &Place<'_>) -> Result<Option<(usize, u32, Datum<'b>)>> {
    wire.field()
        .map_err(|(at, message)| wrong(at, place, message))
}

fn bytes<'b>(at: usize, datum: Datum<'b>, place: &Place<'_>) -> Result<Wire<'b>> {
    match datum {
        Datum::Bytes(wire) => Ok(wire),
        Datum::Number(_) => Err(wrong(
            at,
            place,
            "is a number; a length and bytes are right",
        )),
    }
}

fn text<'b>(at: usize, datum: Datum<'b>, place: &Place<'_>) -> Result<&'b str> {
    let wire = bytes(at, datum, place)?;
    std::str::from_utf8(wire.bytes()).map_err(|error| {
        let at = wire.at().saturating_add(error.valid_up_to());
        wrong(at, place, "is not UTF-8")
    })
}

fn number(at: usize, datum: Datum<'_>, place: &Place<'_>) -> Result<i64> {
    match datum {
        Datum::Number(number) => Ok(number.cast_signed()),
        Datum::Bytes(_) => Err(wrong(at, place, "is a length and bytes; a number is right")),
    }
}

fn unknown(at: usize, number: u32, message: &str, place: &Place<'_>) -> Unreadable {
    wrong(
        at,
        place,
        format!("field {number} of {message} is not known here"),
    )
}

fn wrong(at: usize, place: &Place<'_>, message: impl Into<String>) -> Unreadable {
    Unreadable::Body {
        at,
        field: place.to_string(),
        message: message.into(),
    }
}
