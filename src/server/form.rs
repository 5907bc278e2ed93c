//! In which form objects are sent: as they are, or as the rows of a table, as kubectl asks for them.

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::model::Kind;
use crate::report::table::{Column, cells, columns};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The objects.
    Object,
    /// `meta.k8s.io/v1` `Table`
    Table,
}

impl Form {
    /// What a client asks for; the first of its wishes that can be granted.
    pub fn asked(headers: &HeaderMap) -> Self {
        let wishes = headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        for wish in wishes.split(',') {
            let mut parts = wish.split(';').map(str::trim);
            if parts.next() != Some("application/json") {
                continue;
            }
            let parameters: Vec<_> = parts.collect();
            if !parameters.iter().any(|part| part.starts_with("as=")) {
                return Self::Object;
            }
            if parameters.contains(&"as=Table") && parameters.contains(&"v=v1") {
                return Self::Table;
            }
        }
        Self::Object
    }
}

/// Objects as a table.
pub(super) fn table(kind: Kind, objects: &[&Value], revision: u64, now: Timestamp) -> Value {
    let heads: Vec<_> = columns(kind).iter().map(column).collect();
    let rows: Vec<_> = objects
        .iter()
        .map(|object| {
            json!({
                "cells": cells(kind, object, now),
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": object.get("metadata"),
                },
            })
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": revision.to_string()},
        "columnDefinitions": heads,
        "rows": rows,
    })
}

fn column(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": "string",
        "format": if column.name == "Name" { "name" } else { "" },
        "description": "",
        "priority": i32::from(column.wide),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_sent_to_those_who_ask_for_it() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (accept, form) in [
            ("", Form::Object),
            ("application/json", Form::Object),
            ("application/json, */*", Form::Object),
            (table, Form::Table),
            (
                "application/json;as=PartialObjectMetadataList;v=v1",
                Form::Object,
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(Form::asked(&headers), form, "{accept}");
        }
    }
}
