//! The stack machine: opcodes in, values out.
//!
//! Numbers and names are those of CPython's `Lib/pickletools.py`.

use crate::error::PickleError;
use crate::value::{Value, ValueId, Values};

/// How far beyond what it has filled the memo may be written: picklers count up.
const MEMO_AHEAD: usize = 1024;

/// Opcodes that would import, call or build an object, and those of other pickles: named in the refusal.
const REFUSED: [(u8, &str); 22] = [
    (b'c', "GLOBAL"),
    (0x93, "STACK_GLOBAL"),
    (b'R', "REDUCE"),
    (b'b', "BUILD"),
    (b'i', "INST"),
    (b'o', "OBJ"),
    (0x81, "NEWOBJ"),
    (0x92, "NEWOBJ_EX"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
    (0x8f, "EMPTY_SET"),
    (0x90, "ADDITEMS"),
    (0x91, "FROZENSET"),
    (b'S', "STRING"),
    (b'V', "UNICODE"),
    (b'L', "LONG"),
    (b'F', "FLOAT"),
];

/// Runs a pickle to its end.
pub(crate) fn run(input: &[u8]) -> Result<Values<'_>, PickleError> {
    let mut machine = Machine {
        input,
        at: 0,
        values: Vec::with_capacity(input.len() / 8),
        sequences: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
    };
    let root = loop {
        if let Some(root) = machine.step()? {
            break root;
        }
    };
    let Machine { values, sequences, .. } = machine;
    Ok(Values { input, values, sequences, root })
}

struct Machine<'de> {
    input: &'de [u8],
    at: usize,
    values: Vec<Value>,
    sequences: Vec<Vec<ValueId>>,
    stack: Vec<ValueId>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: Vec<Option<ValueId>>,
}

impl Machine<'_> {
    /// Carries out one opcode; returns the value once the pickle is over.
    fn step(&mut self) -> Result<Option<ValueId>, PickleError> {
        let at = self.at;
        let opcode = self.byte()?;
        match opcode {
            b'.' => return self.pop().map(Some),
            // PROTO, FRAME: what they say is not needed.
            0x80 => drop(self.byte()?),
            0x95 => drop(self.array::<8>()?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.popped_to_mark()?),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            _ if self.scalar(opcode)? || self.container(opcode)? || self.memo(opcode)? => {}
            _ => return Err(refused(opcode, at)),
        }
        Ok(None)
    }

    /// An opcode that pushes a value of one piece. Returns whether it is one.
    fn scalar(&mut self, opcode: u8) -> Result<bool, PickleError> {
        match opcode {
            b'N' => self.push(Value::None)?,
            0x88 => self.push(Value::Bool(true))?,
            0x89 => self.push(Value::Bool(false))?,
            b'J' => self.push_array(|bytes| Value::Int(i32::from_le_bytes(bytes).into()))?,
            b'K' => self.push_array(|[byte]| Value::Int(byte.into()))?,
            b'M' => self.push_array(|bytes| Value::Int(u16::from_le_bytes(bytes).into()))?,
            b'G' => self.push_array(|bytes| Value::Float(f64::from_be_bytes(bytes)))?,
            0x8a | 0x8b => {
                let length = if opcode == 0x8a { self.length1()? } else { self.length4()? };
                self.push_long(length)?;
            }
            0x8c | b'X' | 0x8d => {
                let length = match opcode {
                    0x8c => self.length1()?,
                    b'X' => self.length4()?,
                    _ => self.length8()?,
                };
                let (start, length) = self.span(length)?;
                self.push(Value::Text { start, length })?;
            }
            b'C' | b'U' | b'B' | b'T' | 0x8e | 0x96 => {
                let length = match opcode {
                    b'C' | b'U' => self.length1()?,
                    b'B' | b'T' => self.length4()?,
                    _ => self.length8()?,
                };
                let (start, length) = self.span(length)?;
                self.push(Value::Bytes { start, length })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// An opcode that makes or fills a list, a tuple or a dictionary. Returns whether it is one.
    fn container(&mut self, opcode: u8) -> Result<bool, PickleError> {
        match opcode {
            b']' | b')' => self.push_sequence(Vec::new())?,
            b'l' | b't' => {
                let items = self.popped_to_mark()?;
                self.push_sequence(items)?;
            }
            0x85..=0x87 => self.push_tuple(usize::from(opcode - 0x84))?,
            b'}' => self.push_dictionary(Vec::new())?,
            b'd' => {
                let items = self.popped_to_mark()?;
                self.push_dictionary(items)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.extend_list(vec![item])?;
            }
            b'e' => {
                let items = self.popped_to_mark()?;
                self.extend_list(items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.extend_dictionary(vec![key, value])?;
            }
            b'u' => {
                let items = self.popped_to_mark()?;
                self.extend_dictionary(items)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// An opcode that keeps a value for later, or pushes one that was kept. Returns whether it is one.
    fn memo(&mut self, opcode: u8) -> Result<bool, PickleError> {
        let place = match opcode {
            b'q' | b'h' => self.length1()?,
            b'r' | b'j' => self.length4()?,
            0x94 => self.memo.len(),
            _ => return Ok(false),
        };
        match opcode {
            b'h' | b'j' => self.recall(place)?,
            _ => self.memoize(place)?,
        }
        Ok(true)
    }

    fn malformed(&self, what: &'static str) -> PickleError {
        PickleError::Malformed { what, at: self.at }
    }

    fn byte(&mut self) -> Result<u8, PickleError> {
        let byte = *self.input.get(self.at).ok_or(PickleError::Cut { at: self.at })?;
        self.at += 1;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let bytes = rest.first_chunk::<N>().ok_or(PickleError::Cut { at: self.input.len() })?;
        self.at += N;
        Ok(*bytes)
    }

    fn length1(&mut self) -> Result<usize, PickleError> {
        self.byte().map(usize::from)
    }

    fn length4(&mut self) -> Result<usize, PickleError> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn length8(&mut self) -> Result<usize, PickleError> {
        let length = u64::from_le_bytes(self.array()?);
        usize::try_from(length).map_err(|_| PickleError::Cut { at: self.input.len() })
    }

    /// The next bytes, by where they are: the input is shorter than 4 GiB.
    fn span(&mut self, length: usize) -> Result<(u32, u32), PickleError> {
        let cut = PickleError::Cut { at: self.input.len() };
        let end = self.at.checked_add(length).filter(|end| *end <= self.input.len());
        let Some(end) = end else { return Err(cut) };
        let span = (u32::try_from(self.at), u32::try_from(length));
        self.at = end;
        match span {
            (Ok(start), Ok(length)) => Ok((start, length)),
            _ => Err(cut),
        }
    }

    fn push_array<const N: usize>(
        &mut self,
        value: impl FnOnce([u8; N]) -> Value,
    ) -> Result<(), PickleError> {
        let bytes = self.array()?;
        self.push(value(bytes))
    }

    /// A number of so many bytes, the least first; one that needs more than 64 bits is a float.
    fn push_long(&mut self, length: usize) -> Result<(), PickleError> {
        let (start, length) = self.span(length)?;
        let bytes = &self.input[start as usize..(start + length) as usize];
        let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let fill = if is_negative { 0xff } else { 0 };
        let value = match bytes.len() {
            0..=8 => {
                let mut whole = [fill; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                Value::Int(i64::from_le_bytes(whole))
            }
            _ => {
                let magnitude =
                    bytes.iter().rev().fold(0.0, |sum: f64, byte| sum * 256.0 + f64::from(*byte));
                let modulus = 256_f64.powi(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
                Value::Float(if is_negative { magnitude - modulus } else { magnitude })
            }
        };
        self.push(value)
    }

    fn push_tuple(&mut self, count: usize) -> Result<(), PickleError> {
        let first = self.stack.len().checked_sub(count);
        let first = first.filter(|first| *first >= self.floor());
        let Some(first) = first else {
            return Err(self.malformed("a tuple of more than there is"));
        };
        let items = self.stack.split_off(first);
        self.push_sequence(items)
    }

    fn push_sequence(&mut self, items: Vec<ValueId>) -> Result<(), PickleError> {
        let place = self.new_sequence(items)?;
        self.push(Value::Sequence(place))
    }

    /// Keys and values in turn.
    fn push_dictionary(&mut self, items: Vec<ValueId>) -> Result<(), PickleError> {
        if !items.len().is_multiple_of(2) {
            return Err(self.malformed("a key without a value"));
        }
        let place = self.new_sequence(items)?;
        self.push(Value::Dictionary(place))
    }

    fn new_sequence(&mut self, items: Vec<ValueId>) -> Result<u32, PickleError> {
        let place = u32::try_from(self.sequences.len());
        let place = place.map_err(|_| self.malformed("too many lists"))?;
        self.sequences.push(items);
        Ok(place)
    }

    fn push(&mut self, value: Value) -> Result<(), PickleError> {
        let id = u32::try_from(self.values.len());
        let id = id.map_err(|_| self.malformed("too many values"))?;
        self.values.push(value);
        self.stack.push(ValueId(id));
        Ok(())
    }

    /// What lies below belongs to an earlier mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<ValueId, PickleError> {
        let top = self.stack.get(self.floor()..).and_then(<[ValueId]>::last);
        top.copied().ok_or_else(|| self.malformed("the stack is empty"))
    }

    fn pop(&mut self) -> Result<ValueId, PickleError> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn popped_to_mark(&mut self) -> Result<Vec<ValueId>, PickleError> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark.min(self.stack.len()))),
            None => Err(self.malformed("there is no mark")),
        }
    }

    fn extend_list(&mut self, items: Vec<ValueId>) -> Result<(), PickleError> {
        let list = self.top()?;
        match self.values[list.0 as usize] {
            Value::Sequence(place) => self.sequences[place as usize].extend(items),
            _ => return Err(self.malformed("what is appended to is no list")),
        }
        Ok(())
    }

    fn extend_dictionary(&mut self, items: Vec<ValueId>) -> Result<(), PickleError> {
        if !items.len().is_multiple_of(2) {
            return Err(self.malformed("a key without a value"));
        }
        let dictionary = self.top()?;
        match self.values[dictionary.0 as usize] {
            Value::Dictionary(place) => self.sequences[place as usize].extend(items),
            _ => return Err(self.malformed("what is set is no dictionary")),
        }
        Ok(())
    }

    fn memoize(&mut self, place: usize) -> Result<(), PickleError> {
        let top = self.top()?;
        if place > self.memo.len() + MEMO_AHEAD {
            return Err(self.malformed("the memo has gaps"));
        }
        if place >= self.memo.len() {
            self.memo.resize(place + 1, None);
        }
        self.memo[place] = Some(top);
        Ok(())
    }

    fn recall(&mut self, place: usize) -> Result<(), PickleError> {
        match self.memo.get(place).copied().flatten() {
            Some(id) => self.stack.push(id),
            None => return Err(self.malformed("the memo has no such value")),
        }
        Ok(())
    }
}

fn refused(opcode: u8, at: usize) -> PickleError {
    let known = REFUSED.iter().find(|(number, _)| *number == opcode);
    let name = known.map_or_else(|| format!("{opcode:#04x}"), |(_, name)| (*name).to_owned());
    PickleError::Refused { name, at }
}
