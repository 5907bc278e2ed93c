//! The line format of container logs (Kubernetes' CRI): `TIME STREAM TAG TEXT`.
//!
//! A line longer than [`MAX_TEXT`] is cut into records tagged `P`, the last one `F`; text that the
//! end of the stream left without a newline stays `P`, so that every byte can be told again. Pure.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The longest text of one record (bytes), as in containerd and CRI-O.
pub const MAX_TEXT: usize = 16 * 1024;
/// The longest record that can be right (bytes): text, time, stream, tag and newline.
pub const MAX_RECORD: usize = MAX_TEXT + 64;

/// Where a record came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        })
    }
}

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was read from the container.
    pub time: Timestamp,
    /// Where it came from.
    pub stream: Stream,
    /// Whether a newline followed the text: tag `F`.
    pub full: bool,
    /// The text, any bytes but a newline.
    pub text: Vec<u8>,
}

impl Record {
    /// Reads a record from a line without its newline; `None` where it is none.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut parts = line.splitn(4, |&b| b == b' ');
        let time = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let stream = match parts.next()? {
            b"stdout" => Stream::Stdout,
            b"stderr" => Stream::Stderr,
            _ => return None,
        };
        // Tags may be joined with ':' in time to come; the first one is the one we know.
        let full = match parts.next()?.split(|&b| b == b':').next()? {
            b"F" => true,
            b"P" => false,
            _ => return None,
        };
        Some(Self {
            time,
            stream,
            full,
            text: parts.next()?.to_vec(),
        })
    }
}

/// Cuts one stream of bytes into records.
#[derive(Debug)]
pub struct Cutter {
    stream: Stream,
    pending: Vec<u8>,
}

impl Cutter {
    /// A cutter at the beginning of a stream.
    pub const fn new(stream: Stream) -> Self {
        let pending = Vec::new();
        Self { stream, pending }
    }

    /// Takes what was read and hands over every record that is complete, as its head (`STREAM TAG `)
    /// and its text.
    pub fn feed(&mut self, bytes: &[u8], mut emit: impl FnMut(Head, &[u8])) {
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            let (mut text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            while self.pending.len() + text.len() > MAX_TEXT {
                let (now, later) = text.split_at(MAX_TEXT.saturating_sub(self.pending.len()));
                self.pending.extend_from_slice(now);
                self.emit(false, &mut emit);
                text = later;
            }
            self.pending.extend_from_slice(text);
            if ends {
                self.emit(true, &mut emit);
            }
        }
    }

    /// Hands over what the end of the stream left without a newline.
    pub fn finish(&mut self, mut emit: impl FnMut(Head, &[u8])) {
        if !self.pending.is_empty() {
            self.emit(false, &mut emit);
        }
    }

    fn emit(&mut self, full: bool, emit: &mut impl FnMut(Head, &[u8])) {
        let stream = self.stream;
        emit(Head { stream, full }, &self.pending);
        self.pending.clear();
    }
}

/// What stands between the time and the text of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Where it came from.
    pub stream: Stream,
    /// Whether a newline followed.
    pub full: bool,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.stream, if self.full { 'F' } else { 'P' })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(chunks: &[&[u8]]) -> Vec<(bool, Vec<u8>)> {
        let mut cutter = Cutter::new(Stream::Stdout);
        let mut records = Vec::new();
        let mut emit = |head: Head, text: &[u8]| records.push((head.full, text.to_vec()));
        for chunk in chunks {
            cutter.feed(chunk, &mut emit);
        }
        cutter.finish(&mut emit);
        records
    }

    #[test]
    fn lines_are_full_and_long_ones_are_cut() {
        assert_eq!(
            cut(&[b"a\n\nb", b"c\nd"]),
            [
                (true, b"a".to_vec()),
                (true, vec![]),
                (true, b"bc".to_vec()),
                (false, b"d".to_vec())
            ]
        );
        let exact = [vec![b'x'; MAX_TEXT], vec![b'\n']].concat();
        assert_eq!(cut(&[&exact]), [(true, vec![b'x'; MAX_TEXT])]);
        let longer = [vec![b'x'; 2 * MAX_TEXT + 1], vec![b'\n']].concat();
        let tags: Vec<_> = cut(&[&longer]).iter().map(|r| (r.0, r.1.len())).collect();
        assert_eq!(tags, [(false, MAX_TEXT), (false, MAX_TEXT), (true, 1)]);
    }

    #[test]
    fn a_record_parses() {
        let line = b"2016-10-06T00:17:09.669794202Z stderr P a  b ";
        let record = Record::parse(line).unwrap();
        assert_eq!(record.time.as_nanosecond(), 1_475_713_029_669_794_202);
        assert_eq!((record.stream, record.full), (Stream::Stderr, false));
        assert_eq!(record.text, b"a  b ");
        // containerd writes its local offset, and cuts zeros at the end of the fraction.
        assert!(Record::parse(b"2016-10-06T02:17:09.6+02:00 stdout F ").is_some());
        for bad in [
            &b""[..],
            b"x stdout F y",
            b"2016-10-06T00:17:09Z stdin F y",
            b"2016-10-06T00:17:09Z stdout X y",
            b"2016-10-06T00:17:09Z stdout F",
            b"\xff stdout F y",
        ] {
            assert_eq!(Record::parse(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_however_it_arrives(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..2000),
            cuts in proptest::collection::vec(1usize..400, 0..20),
        ) {
            let mut chunks = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                chunks.push(now);
                rest = later;
            }
            chunks.push(rest);
            let mut told = Vec::new();
            for (full, text) in cut(&chunks) {
                told.extend(text);
                if full {
                    told.push(b'\n');
                }
            }
            prop_assert_eq!(told, bytes);
        }
    }
}
