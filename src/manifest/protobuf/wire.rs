//! Fields and their bytes, as protobuf lays them out.
//!
//! Decides where a field begins and ends; must never read past the end, whatever a length says, nor know
//! what a field means.

/// Bytes of a message that are still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire<'b> {
    rest: &'b [u8],
    at: usize,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Datum<'b> {
    /// A number, or a truth value.
    Number(u64),
    /// A text, bytes or another message.
    Bytes(Wire<'b>),
}

/// Why the bytes cannot be read on.
pub(super) type Broken = (usize, String);

impl<'b> Wire<'b> {
    /// These bytes, of which the first is at this offset of the body.
    pub fn new(bytes: &'b [u8], at: usize) -> Self {
        Self { rest: bytes, at }
    }

    /// Offset of the next byte in the body.
    pub fn at(&self) -> usize {
        self.at
    }

    /// All that is not yet read.
    pub fn bytes(&self) -> &'b [u8] {
        self.rest
    }

    /// The next field: where it begins, its number and what it holds. Nothing at the end.
    pub fn field(&mut self) -> Result<Option<(usize, u32, Datum<'b>)>, Broken> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let at = self.at;
        let tag = self.number()?;
        let number = u32::try_from(tag >> 3).unwrap_or(0);
        if !(1..=MAX_FIELD).contains(&number) {
            return Err((at, format!("{} is not the number of a field", tag >> 3)));
        }
        let datum = match tag & 7 {
            0 => Datum::Number(self.number()?),
            2 => Datum::Bytes(self.block()?),
            other => {
                let message = format!("wire type {other} is in no message of Kubernetes");
                return Err((at, message));
            }
        };
        Ok(Some((at, number, datum)))
    }

    /// A number of one to ten bytes, seven bits in each, the lowest first.
    fn number(&mut self) -> Result<u64, Broken> {
        let at = self.at;
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or_else(|| {
                let message = "a number begins here and is cut off";
                (at, message.to_owned())
            })?;
            self.rest = rest;
            self.at = self.at.saturating_add(1);
            let bits = u64::from(byte & 0x7f);
            // Of the tenth byte one bit has a place.
            if bits.leading_zeros() < shift {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err((at, "a number has more than 64 bits".to_owned()))
    }

    /// A length, and as many bytes.
    fn block(&mut self) -> Result<Self, Broken> {
        let at = self.at;
        let length = self.number()?;
        let cut = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length));
        let Some((block, rest)) = cut else {
            let left = self.rest.len();
            return Err((at, format!("{length} bytes are to follow, {left} do")));
        };
        let inner = Self::new(block, self.at);
        self.rest = rest;
        self.at = self.at.saturating_add(block.len());
        Ok(inner)
    }
}

/// Protobuf's largest field number.
const MAX_FIELD: u32 = (1 << 29) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> Result<u64, Broken> {
        Wire::new(bytes, 0).number()
    }

    #[test]
    fn numbers_have_up_to_ten_bytes_and_64_bits() {
        let longest = [[0xff; 9].as_slice(), &[1]].concat();
        for (bytes, expected) in [
            (&[0][..], 0),
            (&[0x7f], 127),
            (&[0x80, 1], 128),
            (&[0xac, 2], 300),
            (&longest, u64::MAX),
        ] {
            assert_eq!(number(bytes), Ok(expected), "{bytes:?}");
        }
        for bytes in [
            [[0xff; 9].as_slice(), &[2]].concat(),
            [[0x80; 10].as_slice(), &[0]].concat(),
        ] {
            let (_, message) = number(&bytes).unwrap_err();
            assert_eq!(message, "a number has more than 64 bits", "{bytes:?}");
        }
        let (at, message) = number(&[0x80]).unwrap_err();
        assert_eq!(
            (at, message.as_str()),
            (0, "a number begins here and is cut off")
        );
    }

    #[test]
    fn a_length_beyond_the_end_is_told_with_its_place() {
        let mut wire = Wire::new(&[0x0a, 1, b'a', 0x12, 9, b'b'], 4);
        let (at, number, datum) = wire.field().unwrap().unwrap();
        assert_eq!((at, number), (4, 1));
        assert!(matches!(datum, Datum::Bytes(inner) if inner.bytes() == b"a" && inner.at() == 6));
        let (at, message) = wire.field().unwrap_err();
        assert_eq!((at, message.as_str()), (8, "9 bytes are to follow, 1 do"));
    }

    #[test]
    fn groups_fixed_numbers_and_field_nought_are_refused() {
        for (bytes, expected) in [
            (&[0x0b_u8][..], "wire type 3 is in no message of Kubernetes"),
            (
                &[0x0d, 0, 0, 0, 0],
                "wire type 5 is in no message of Kubernetes",
            ),
            (&[0x02, 0], "0 is not the number of a field"),
        ] {
            let (at, message) = Wire::new(bytes, 7).field().unwrap_err();
            assert_eq!((at, message.as_str()), (7, expected));
        }
    }
}
