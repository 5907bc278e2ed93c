//! Objects in protobuf beside their JSON (tests/data/protobuf.json): from the encoders of Kubernetes' own
//! library with every field set, and as kubectl sends them.

use serde_json::Value;

/// An object in both forms.
pub struct Row {
    pub name: String,
    pub body: Vec<u8>,
    pub object: Value,
}

/// All of them.
pub fn rows() -> Vec<Row> {
    let table: Vec<Value> = serde_json::from_str(include_str!("../data/protobuf.json")).unwrap();
    assert_eq!(table.len(), 33, "the table is not to be cut");
    let row = |row: &Value| Row {
        name: row["name"].as_str().unwrap().to_owned(),
        body: bytes(row["body"].as_str().unwrap()),
        object: row["object"].clone(),
    };
    table.iter().map(row).collect()
}

/// The row whose name begins so.
#[allow(dead_code, reason = "not all tests look for one")]
pub fn row(name: &str) -> Row {
    rows()
        .into_iter()
        .find(|row| row.name.starts_with(name))
        .unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}
