//! `allot quantity TEXT...`: what a quantity is worth, and what its writer may have meant.
//!
//! Pure: reads the texts it is given and writes to the writer it is given. It cannot know what a figure is
//! for, so a warning only says what the figure would be as memory.

use std::io::{self, Write};

use clap::ValueEnum;
use comfy_table::{Table, presets};
use serde::{Serialize, Serializer};

use crate::units::{Format, Quantity};

/// Exit code when at least one text could not be read.
const UNREADABLE: u8 = 2;

/// Units below which a figure is no sensible amount of memory: one mebibyte.
const SMALL: u64 = 1 << 20;

/// Show what quantities are worth, and warn of likely slips
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Quantities such as 250m, 1.5Gi or 1e3; put `--` before one such as -1Gi
    // `allow_hyphen_values` would swallow every option that follows the first text.
    #[arg(required = true, value_name = "TEXT", allow_negative_numbers = true)]
    pub texts: Vec<String>,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// How the answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Columns for people
    #[default]
    Table,
    /// A JSON list with one object for each text
    Json,
}

/// The answer for one text.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The text as given.
    pub text: String,
    /// Whether it is a quantity.
    pub ok: bool,
    /// What it is worth, or why it cannot be read.
    #[serde(flatten)]
    pub reading: Reading,
}

/// What was read from one text.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Reading {
    /// A quantity.
    Figures {
        /// The form in which Kubernetes prints it.
        canonical: Quantity,
        /// Units, fractions rounded away from zero.
        value: Figure,
        /// Milli-units, fractions rounded away from zero.
        milli: Figure,
        /// What is odd about it.
        warning: Option<String>,
    },
    /// Not a quantity.
    Fault {
        /// What is wrong and what would be right.
        error: String,
    },
}

/// A whole number: in JSON a number where it fits 64 bits, signed or unsigned, otherwise a string, so that no
/// reader of JSON sees a rounded figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure(pub i128);

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(number) = i64::try_from(self.0) {
            serializer.serialize_i64(number)
        } else if let Ok(number) = u64::try_from(self.0) {
            serializer.serialize_u64(number)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}

/// Answers for every text and returns the exit code: 0, or 2 when a text could not be read.
///
/// # Errors
/// Whatever the writer reports.
pub fn run(args: &Args, out: &mut dyn Write) -> io::Result<u8> {
    let answers: Vec<Answer> = args.texts.iter().map(|text| answer(text)).collect();
    match args.output {
        Output::Table => write_table(&answers, out)?,
        Output::Json => {
            serde_json::to_writer_pretty(&mut *out, &answers)?;
            writeln!(out)?;
        }
    }
    let readable = answers.iter().all(|answer| answer.ok);
    Ok(if readable { 0 } else { UNREADABLE })
}

/// Reads one text.
pub fn answer(text: &str) -> Answer {
    let (ok, reading) = match text.parse::<Quantity>() {
        Ok(quantity) => {
            let figures = Reading::Figures {
                canonical: quantity,
                value: Figure(quantity.value()),
                milli: Figure(quantity.milli_value()),
                warning: warning(text, quantity),
            };
            (true, figures)
        }
        Err(error) => {
            let error = error.to_string();
            (false, Reading::Fault { error })
        }
    };
    Answer {
        text: text.to_owned(),
        ok,
        reading,
    }
}

/// What is odd about a figure: cut to what a binary suffix can carry, or no whole or sensible number of bytes.
fn warning(text: &str, quantity: Quantity) -> Option<String> {
    let value = quantity.value();
    if quantity.format() == Format::BinarySi && value.abs() == i128::from(i64::MAX) {
        return Some(format!(
            "a binary suffix cannot carry more than 2^63-1; this counts as {value}"
        ));
    }
    let small = quantity < Quantity::from_units(SMALL, Format::BinarySi);
    let thousandths = text.strip_suffix('m').filter(|_| small);
    if quantity.is_negative()
        || quantity.is_zero()
        || (quantity.is_integer() && thousandths.is_none())
    {
        return None;
    }
    let exact = quantity.exact();
    let bytes = if exact == "1" { "byte" } else { "bytes" };
    let advice = match thousandths {
        Some(number) => format!("; did you mean {number}Mi?"),
        None if small
            && text.ends_with(|c: char| c.is_ascii_digit())
            && quantity.format() == Format::DecimalSi =>
        {
            format!("; did you mean {text}Gi?")
        }
        None => format!(" and counts as {value}"),
    };
    Some(format!("as memory this is {exact} {bytes}{advice}"))
}

fn write_table(answers: &[Answer], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["TEXT", "CANONICAL", "EXACT", "UNITS", "MILLI"]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    let mut remarks = Vec::new();
    for answer in answers {
        let text = &answer.text;
        match &answer.reading {
            Reading::Figures {
                canonical,
                value,
                milli,
                warning,
            } => {
                table.add_row([
                    text.clone(),
                    canonical.to_string(),
                    canonical.exact(),
                    value.0.to_string(),
                    milli.0.to_string(),
                ]);
                remarks.extend(warning.iter().map(|w| format!("warning: {text}: {w}")));
            }
            Reading::Fault { error } => remarks.push(format!("error: {error}")),
        }
    }
    if answers.iter().any(|answer| answer.ok) {
        writeln!(out, "{}", table.trim_fmt())?;
    }
    for remark in remarks {
        writeln!(out, "{remark}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    fn printed(line: &[&str]) -> (String, u8) {
        let program = Program::try_parse_from([&["quantity"], line].concat()).unwrap();
        let mut out = Vec::new();
        let code = run(&program.args, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), code)
    }

    fn warning_for(text: &str) -> Option<String> {
        warning(text, text.parse().unwrap())
    }

    #[test]
    fn json_has_one_object_for_each_text() {
        let (text, code) = printed(&[
            "400m",
            "-1",
            "1000E",
            "18446744073709551615",
            "1GB",
            "-o",
            "json",
        ]);
        let expected = json!([
            {"text": "400m", "ok": true, "canonical": "400m", "value": 1, "milli": 400,
             "warning": "as memory this is 0.4 bytes; did you mean 400Mi?"},
            {"text": "-1", "ok": true, "canonical": "-1", "value": -1, "milli": -1000, "warning": null},
            {"text": "1000E", "ok": true, "canonical": "1000E", "value": "1000000000000000000000",
             "milli": "1000000000000000000000000", "warning": null},
            {"text": "18446744073709551615", "ok": true, "canonical": "18446744073709551615",
             "value": u64::MAX, "milli": "18446744073709551615000", "warning": null},
            {"text": "1GB", "ok": false, "error": "quantities must match the regular expression \
              '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': \"1GB\" is not a quantity; did you mean 1G or 1Gi?"},
        ]);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        assert_eq!(code, 2);
    }

    #[test]
    fn table_is_followed_by_remarks() {
        let (text, code) = printed(&["64Mi", "400m", "--", "-1Ki"]);
        let expected = "\
TEXT   CANONICAL   EXACT      UNITS      MILLI
64Mi   64Mi        67108864   67108864   67108864000
400m   400m        0.4        1          400
-1Ki   -1Ki        -1024      -1024      -1024000
warning: 400m: as memory this is 0.4 bytes; did you mean 400Mi?
";
        assert_eq!((text.as_str(), code), (expected, 0));
    }

    #[test]
    fn only_faults_print_no_table() {
        let (text, code) = printed(&["1K"]);
        assert_eq!(
            text,
            "error: unable to parse quantity's suffix: \"K\" in \"1K\" is not a suffix; did you mean 1k or 1Ki?\n"
        );
        assert_eq!(code, 2);
    }

    #[test]
    fn a_text_is_needed() {
        assert!(Program::try_parse_from(["quantity", "-o", "json"]).is_err());
    }

    #[test]
    fn warnings_say_what_the_figure_is_as_memory() {
        let warned = [
            ("400m", "as memory this is 0.4 bytes; did you mean 400Mi?"),
            ("100m", "as memory this is 0.1 bytes; did you mean 100Mi?"),
            ("1000m", "as memory this is 1 byte; did you mean 1000Mi?"),
            ("1500m", "as memory this is 1.5 bytes; did you mean 1500Mi?"),
            ("0.5", "as memory this is 0.5 bytes; did you mean 0.5Gi?"),
            ("5n", "as memory this is 0.000000005 bytes and counts as 1"),
            ("1e-3", "as memory this is 0.001 bytes and counts as 1"),
            (
                "1.1Gi",
                "as memory this is 1181116006.4 bytes and counts as 1181116007",
            ),
            (
                "20000000001m",
                "as memory this is 20000000.001 bytes and counts as 20000001",
            ),
            (
                "9Ei",
                "a binary suffix cannot carry more than 2^63-1; this counts as 9223372036854775807",
            ),
        ];
        for (text, expected) in warned {
            assert_eq!(warning_for(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "0",
            "0m",
            "1",
            "4",
            "-400m",
            "64Mi",
            "1.5Gi",
            "1M",
            "2e9",
            "128974848000m",
        ] {
            assert_eq!(warning_for(text), None, "{text}");
        }
    }

    #[test]
    fn every_proposal_can_be_read_and_is_no_longer_odd() {
        for text in ["400m", "1500m", "0.5", "1.5", ".5"] {
            let warning = warning_for(text).unwrap();
            let proposal = warning
                .split("did you mean ")
                .nth(1)
                .unwrap()
                .trim_end_matches('?');
            assert_eq!(warning_for(proposal), None, "{proposal}");
        }
    }
}
