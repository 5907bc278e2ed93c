//! `allot get`: objects as a table, or as they are, and what becomes of them.

mod watch;

use std::io::Write;

use serde_json::{Value, json};

use super::choice::Objects;
use super::client::Client;
use super::error::CliError;
use super::kinds::{Chosen, Lookup, prefix};
use super::render::clean;
use super::tables::{self, Names, Shape};
use super::target::Target;
use super::{Context, OutputForm, pod_name};
use crate::exit;
use crate::model::Kind;

/// List pods, nodes, events, quotas, limits or other objects
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which objects
    #[command(flatten)]
    pub objects: Objects,
    /// How to print them
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    /// Leave out the line of column names
    #[arg(long)]
    pub no_headers: bool,
    /// Go on with a line for each change
    #[arg(short, long)]
    pub watch: bool,
}

impl Args {
    fn shape(&self, kinds: &Chosen) -> Shape {
        Shape {
            wide: self.output == Output::Wide,
            namespace: self.objects.all_namespaces,
            no_headers: self.no_headers,
            names: match kinds.single() {
                Some(_) => Names::Bare,
                None => Names::WithKind,
            },
        }
    }
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Columns for people
    #[default]
    Table,
    /// More columns
    Wide,
    /// The whole objects as JSON
    Json,
    /// The whole objects as YAML
    Yaml,
    /// Their names
    Name,
}

impl Output {
    fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

/// Lists what is named, or all.
///
/// # Errors
/// No daemon, no such object, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let client = context.client()?;
    let kinds = Lookup::default().chosen(&args.objects.kinds, &client)?;
    if args.watch {
        return watch::run(args, &kinds, context, &client, out);
    }
    let mut found = Vec::new();
    for kind in kinds.as_slice() {
        found.push((*kind, fetch(*kind, args, context, &client)?));
    }
    let is_empty = found.iter().all(|(_, items)| items.is_empty());
    if is_empty && args.output.is_table() {
        let is_global = kinds.as_slice().iter().all(|kind| !kind.namespaced);
        let place = if is_global || args.objects.all_namespaces {
            String::new()
        } else {
            format!(" in {} namespace", context.namespace())
        };
        context.say(&format!("No resources found{place}."));
        return Ok(exit::OK);
    }
    match args.output {
        Output::Table | Output::Wide => {
            let tables = found.iter().filter(|(_, items)| !items.is_empty());
            let tables: Vec<_> = tables
                .map(|(kind, items)| {
                    tables::page(*kind, items, args.shape(&kinds), context.clock.now).to_string()
                })
                .collect();
            write!(out, "{}", tables.join("\n"))?;
        }
        Output::Name => {
            for (kind, items) in &found {
                for item in items {
                    writeln!(out, "{}", name(*kind, item))?;
                }
            }
        }
        Output::Json | Output::Yaml => {
            let items = found.into_iter().flat_map(|(_, items)| items).collect();
            print(args.output, &whole(args, &kinds, items), out)?;
        }
    }
    Ok(exit::OK)
}

/// Prints an object for programs.
fn print(output: Output, object: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let form = match output {
        Output::Yaml => OutputForm::Yaml,
        _ => OutputForm::Json,
    };
    form.write(object, out).map(|_| ())
}

/// `KIND/NAME`
fn name(kind: Kind, object: &Value) -> String {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    format!("{}/{}", prefix(kind), clean(name.unwrap_or_default()))
}

/// The objects as the daemon sends them, each with its apiVersion and kind.
fn fetch(
    kind: Kind,
    args: &Args,
    context: &Context,
    client: &Client,
) -> Result<Vec<Value>, CliError> {
    let mut items = Vec::new();
    if args.objects.names.is_empty() {
        let namespace = args.objects.namespace(context);
        let mut list: Value = client.get(&Target::kind(kind, namespace))?;
        if let Some(Value::Array(all)) = list.get_mut("items").map(Value::take) {
            items = all;
        }
    } else {
        for text in &args.objects.names {
            let (namespace, name) = place(kind, text, context)?;
            items.push(client.get(&Target::kind(kind, namespace).below(name))?);
        }
    }
    Ok(items.into_iter().map(|item| typed(item, kind)).collect())
}

/// Namespace and name of an object that somebody named.
fn place<'a>(
    kind: Kind,
    text: &'a str,
    context: &'a Context,
) -> Result<(Option<&'a str>, &'a str), CliError> {
    if !kind.namespaced {
        return Ok((None, text));
    }
    let (namespace, name) = pod_name(text, context)?;
    Ok((Some(namespace), name))
}

/// The object with its apiVersion and kind in front; in a list it goes without.
fn typed(item: Value, kind: Kind) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("apiVersion".to_owned(), json!(kind.api_version()));
    object.insert("kind".to_owned(), json!(kind.kind));
    if let Value::Object(fields) = item {
        object.extend(fields);
    }
    Value::Object(object)
}

/// One object that was asked for by name, otherwise a list that `apply` can read.
fn whole(args: &Args, kinds: &Chosen, items: Vec<Value>) -> Value {
    match <[Value; 1]>::try_from(items) {
        Ok([item]) if args.objects.names.len() == 1 && kinds.single().is_some() => item,
        Ok(items) => json!({"apiVersion": "v1", "kind": "List", "items": items}),
        Err(items) => json!({"apiVersion": "v1", "kind": "List", "items": items}),
    }
}
