//! What is to be changed, and how: the parameters and bodies of requests.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::place::Place;
use super::status::Failure;
use crate::agent::{Cause, Put, Refusal};
use crate::manifest::protobuf::{self, Unreadable};
use crate::manifest::{self, Object, Strictness};

/// The body of a request as JSON or YAML; what came as protobuf is made JSON of.
pub(super) struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let is_protobuf = media_type(request.headers()).eq_ignore_ascii_case(protobuf::MEDIA_TYPE);
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(IntoResponse::into_response)?;
        if !is_protobuf || bytes.is_empty() {
            return Ok(Self(bytes));
        }
        match protobuf::read(&bytes) {
            Ok(object) => Ok(Self(object.to_string().into())),
            Err(why) => Err(Failure(unreadable(why)).into_response()),
        }
    }
}

fn unreadable(why: Unreadable) -> Refusal {
    let text = format!("the body: {why}");
    match why {
        Unreadable::Kind { .. } => Refusal::new(415, "UnsupportedMediaType", text),
        Unreadable::Body { field, message, .. } => {
            let mut refusal = Refusal::bad_request(text);
            refusal.causes = vec![Cause {
                reason: "FieldValueInvalid".to_owned(),
                field,
                message,
            }];
            refusal
        }
    }
}

/// What a body says it is, without parameters; empty if it says nothing.
pub(super) fn media_type(headers: &HeaderMap) -> &str {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim()
}

/// Query parameters of a change.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeQuery {
    dry_run: Option<String>,
    field_validation: Option<String>,
    grace_period_seconds: Option<u64>,
}

impl ChangeQuery {
    pub(super) fn is_dry_run(&self) -> Result<bool, Refusal> {
        dry_run(self.dry_run.as_deref())
    }

    /// How an object is put that is new, or that is there already.
    pub(super) fn put(&self, new: bool) -> Result<Put, Refusal> {
        Ok(Put {
            new,
            dry_run: self.is_dry_run()?,
        })
    }

    /// For a change that cannot be tried: it must not be done by somebody who only wanted to try.
    pub(super) fn no_dry_run(&self) -> Result<(), Refusal> {
        if self.is_dry_run()? {
            return Err(Refusal::bad_request("dryRun is not possible here"));
        }
        Ok(())
    }

    fn strictness(&self) -> Result<Validation, Refusal> {
        match self.field_validation.as_deref() {
            None | Some("" | "Strict") => Ok(Validation::Strict),
            Some("Warn") => Ok(Validation::Warn),
            Some("Ignore") => Ok(Validation::Ignore),
            Some(other) => Err(Refusal::bad_request(format!(
                "fieldValidation is {other:?}: Strict, Warn or Ignore is right"
            ))),
        }
    }
}

/// What becomes of unknown fields. Strict is our default, as kubectl's; a bare API server warns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Validation {
    Strict,
    Warn,
    Ignore,
}

fn dry_run(text: Option<&str>) -> Result<bool, Refusal> {
    match text {
        None | Some("") => Ok(false),
        Some("All") => Ok(true),
        Some(other) => Err(Refusal::bad_request(format!(
            "dryRun is {other:?}: All is right"
        ))),
    }
}

/// The object of a body at the place that its path says.
pub(super) fn parse(
    place: &Place,
    body: &[u8],
    query: &ChangeQuery,
) -> Result<(Value, HeaderMap), Refusal> {
    let (object, headers) = parse_one(body, query)?;
    let value = object
        .to_value()
        .map_err(|error| Refusal::bad_request(format!("the object has no JSON form: {error}")))?;
    let says = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (place.kind.kind, place.kind.api_version());
    if (says("apiVersion"), says("kind")) != (&version, kind) {
        return Err(Refusal::bad_request(format!(
            "the body is a {} {}, the path is for {version} {kind}",
            says("apiVersion"),
            says("kind"),
        )));
    }
    Ok((placed(place, value)?, headers))
}

/// The object with the namespace and the name of the path; it must not say another.
pub(super) fn placed(place: &Place, mut object: Value) -> Result<Value, Refusal> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else {
        return Err(Refusal::bad_request("metadata is missing"));
    };
    let name = (!place.name.is_empty()).then_some(&place.name);
    for (field, expected) in [("namespace", place.namespace.as_ref()), ("name", name)] {
        let Some(expected) = expected else { continue };
        let given = metadata.entry(field).or_insert(Value::Null);
        if given.is_null() || given == "" {
            *given = json!(expected);
        }
        if given != expected {
            return Err(Refusal::bad_request(format!(
                "metadata.{field} is {given}, the path's is {expected:?}: they must be the same"
            )));
        }
    }
    Ok(object)
}

/// One object out of a body, and a `Warning` header for each field that is passed over; everything
/// wrong with it is told at once.
fn parse_one(body: &[u8], query: &ChangeQuery) -> Result<(Object, HeaderMap), Refusal> {
    let validation = query.strictness()?;
    let strictness = match validation {
        Validation::Ignore | Validation::Warn => Strictness::Warn,
        Validation::Strict => Strictness::Strict,
    };
    let manifest = manifest::read("the body", body, strictness);
    if !manifest.problems.is_empty() {
        let texts: Vec<_> = manifest.problems.iter().map(ToString::to_string).collect();
        let mut refusal = Refusal::bad_request(texts.join("; "));
        refusal.causes = manifest
            .problems
            .into_iter()
            .map(|problem| Cause {
                reason: "FieldValueInvalid".to_owned(),
                field: problem.field,
                message: problem.message,
            })
            .collect();
        return Err(refusal);
    }
    let mut warnings = HeaderMap::new();
    if validation != Validation::Ignore {
        let texts = manifest.warnings.iter();
        let texts: Vec<_> = texts
            .map(|problem| format!("{}: {}", problem.field, problem.message))
            .collect();
        warn(&mut warnings, &texts);
    }
    let mut objects = manifest.objects.into_iter();
    match (objects.next().map(|located| located.object), objects.next()) {
        (Some(object), None) => Ok((object, warnings)),
        _ => Err(Refusal::bad_request(
            "the body must hold exactly one object",
        )),
    }
}

/// Warnings as kubectl shows them: code 299, no agent (RFC 7234).
pub(super) fn warn(headers: &mut HeaderMap, texts: &[String]) {
    for text in texts.iter().take(MAX_WARNINGS) {
        headers.extend(warning(text));
    }
    let more = texts.len().saturating_sub(MAX_WARNINGS);
    if more > 0 {
        headers.extend(warning(&format!("and {more} warnings more")));
    }
}

/// More warnings are only counted: clients take a hundred headers, not all of them more.
const MAX_WARNINGS: usize = 20;

/// More of a warning is not told (characters).
const MAX_WARNING: usize = 256;

fn warning(text: &str) -> Option<(HeaderName, HeaderValue)> {
    let mut quoted = String::new();
    for c in text.chars().take(MAX_WARNING) {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    let value = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes());
    Some((header::WARNING, value.ok()?))
}

/// The body that a client may send with a deletion.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteOptions {
    grace_period_seconds: Option<u64>,
    preconditions: Option<Preconditions>,
    dry_run: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    pub(super) fn read(body: &[u8]) -> Result<Self, Refusal> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let options: Self = serde_json::from_slice(body).map_err(|error| {
            Refusal::bad_request(format!("the body is no DeleteOptions: {error}"))
        })?;
        let conditions = options.preconditions.as_ref();
        if conditions.is_some_and(|conditions| conditions.resource_version.is_some()) {
            return Err(Refusal::bad_request(
                "preconditions.resourceVersion is not possible here: preconditions.uid is",
            ));
        }
        Ok(options)
    }

    /// Whether to delete nothing: kubectl says so in the body, others in the query.
    pub(super) fn is_dry_run(&self, query: &ChangeQuery) -> Result<bool, Refusal> {
        let mut is_dry_run = query.is_dry_run()?;
        for text in self.dry_run.iter().flatten() {
            is_dry_run |= dry_run(Some(text))?;
        }
        Ok(is_dry_run)
    }

    /// Seconds between SIGTERM and SIGKILL in place of the pod's own.
    pub(super) fn grace(&self, query: &ChangeQuery) -> Option<u64> {
        query.grace_period_seconds.or(self.grace_period_seconds)
    }

    /// The uid that the object must have.
    pub(super) fn uid(&self) -> Option<String> {
        self.preconditions
            .as_ref()
            .and_then(|conditions| conditions.uid.clone())
    }
}
