//! Frames and texts, read from a process that may have forged them: each list has an end, and each text a
//! length that is believed only as far as it goes.

use std::time::Instant;

use super::layout::{Current, Gil, Position, PythonLayout};
use super::lines;
use super::runtime::FoundRuntime;
use crate::bounds::{MAX_FRAMES, MAX_NAME, bounded};
use crate::evidence::{PythonFrame, PythonStack};
use crate::memory;

/// Interpreters, threads and frames that are followed; a list that is longer leads in a circle.
const MAX_INTERPRETERS: usize = 64;
const MAX_STATES: usize = 8192;
/// Frames that are followed: those of C between those of Python are none that is kept.
const MAX_FOLLOWED: usize = 4 * MAX_FRAMES;
/// The longest table of lines.
const MAX_TABLE: u64 = 1 << 20;
/// `ob_size` of a variable object, and where the bytes of a `bytes` begin.
const SIZE: u64 = 16;
const BYTES: u64 = 32;
/// `PyASCIIObject.length` and `.state`.
const TEXT_LENGTH: u64 = 16;
const TEXT_STATE: u64 = 32;

/// One thread of Python.
#[derive(Debug)]
pub(super) struct ThreadState {
    pub(super) pthread: u64,
    pub(super) native_id: Option<u32>,
    pub(super) stack: PythonStack,
}

/// Reads a process's memory by a layout.
pub(super) struct Reader<'a> {
    pub(super) pid: u32,
    pub(super) runtime: &'a FoundRuntime,
    /// Until when it reads: structures that lead in circles are read for ever otherwise.
    pub(super) deadline: Instant,
}

impl Reader<'_> {
    /// All threads of all interpreters.
    pub(super) fn threads(&self) -> Result<Vec<ThreadState>, String> {
        let layout = self.layout();
        let mut threads = Vec::new();
        let mut interpreter = self.pointer(self.runtime.address, layout.interpreters)?;
        for _ in 0..MAX_INTERPRETERS {
            if interpreter == 0 {
                return Ok(threads);
            }
            let holder = self.gil_holder(interpreter).unwrap_or(0);
            let mut thread = self.pointer(interpreter, layout.threads)?;
            while thread != 0 {
                if threads.len() >= MAX_STATES {
                    return Err("its list of threads does not end".to_owned());
                }
                threads.push(self.thread(thread, holder)?);
                thread = self.pointer(thread, layout.thread.next)?;
            }
            interpreter = self.pointer(interpreter, layout.next_interpreter)?;
        }
        Err("its list of interpreters does not end".to_owned())
    }

    const fn layout(&self) -> &PythonLayout {
        &self.runtime.layout
    }

    fn gil_holder(&self, interpreter: u64) -> Result<u64, String> {
        match self.layout().gil {
            Gil::Runtime(offset) => self.pointer(self.runtime.address, offset),
            Gil::Interpreter { pointer, holder, locked } => {
                let gil = self.pointer(interpreter, pointer)?;
                let is_locked = memory::number(self.pid, gil.wrapping_add(locked)) == Some(1);
                if is_locked { self.pointer(gil, holder) } else { Ok(0) }
            }
        }
    }

    fn thread(&self, thread: u64, holder: u64) -> Result<ThreadState, String> {
        let layout = &self.layout().thread;
        let native_id = layout
            .native_id
            .and_then(|offset| memory::number(self.pid, thread.wrapping_add(offset)));
        let frame = match layout.frame {
            Current::Direct(offset) => self.pointer(thread, offset)?,
            Current::ByCFrame(cframe, current) => match self.pointer(thread, cframe)? {
                0 => 0,
                cframe => self.pointer(cframe, current)?,
            },
        };
        Ok(ThreadState {
            pthread: self.pointer(thread, layout.pthread)?,
            native_id,
            stack: PythonStack { has_gil: thread == holder, frames: self.frames(frame)? },
        })
    }

    fn frames(&self, innermost: u64) -> Result<Vec<PythonFrame>, String> {
        let layout = &self.layout().frame;
        let mut frames = Vec::new();
        let mut frame = innermost;
        for _ in 0..MAX_FOLLOWED {
            if frame == 0 || frames.len() >= MAX_FRAMES {
                break;
            }
            let is_of_c = layout.owner.is_some_and(|(offset, from)| {
                self.byte(frame, offset).is_none_or(|owner| owner >= from)
            });
            if !is_of_c {
                frames.push(self.frame(frame)?);
            }
            frame = self.pointer(frame, layout.back)?;
        }
        Ok(frames)
    }

    fn frame(&self, frame: u64) -> Result<PythonFrame, String> {
        let layout = *self.layout();
        // Since 3.14 the lowest bits are marks.
        let code = self.pointer(frame, layout.frame.code)? & !7;
        let instruction = match layout.frame.position {
            Position::Index { offset, bytes } => {
                let index = memory::number(self.pid, frame.wrapping_add(offset)).unwrap_or(0);
                u64::from(index).wrapping_mul(bytes)
            }
            Position::Pointer { offset, first } => {
                let pointer = self.pointer(frame, offset)?;
                pointer.wrapping_sub(code.wrapping_add(first))
            }
        };
        let text = |offset: u64| self.text(self.pointer(code, offset)?);
        let first = memory::number(self.pid, code.wrapping_add(layout.code.first_line));
        let first = i64::from(first.unwrap_or(0).cast_signed());
        let table = self.bytes(self.pointer(code, layout.code.lines)?);
        Ok(PythonFrame {
            function: text(layout.code.name)?,
            file: text(layout.code.file)?,
            line: lines::line(layout.code.format, &table, first, instruction),
        })
    }

    /// A `str`, as far as names go.
    fn text(&self, object: u64) -> Result<String, String> {
        let length = self.pointer(object, TEXT_LENGTH)?;
        let state = memory::number(self.pid, object.wrapping_add(TEXT_STATE)).unwrap_or(0);
        let layout = self.layout().text;
        // Behind `interned`: kind (3 bits), compact (1), ascii (1).
        let bits = state >> layout.kind;
        let (kind, is_compact, is_ascii) = (bits & 7, bits >> 3 & 1 == 1, bits >> 4 & 1 == 1);
        if !is_compact || !matches!(kind, 1 | 2 | 4) {
            return Err("a name is no text".to_owned());
        }
        let start = object.wrapping_add(if is_ascii { layout.ascii } else { layout.other });
        let letters = usize::try_from(length).unwrap_or(usize::MAX).min(MAX_NAME);
        let mut bytes = vec![0; letters * kind as usize];
        let read = memory::read(self.pid, start, &mut bytes);
        bytes.truncate(read);
        let letter = |letter: &[u8]| {
            let mut number = [0; 4];
            number[..letter.len()].copy_from_slice(letter);
            char::from_u32(u32::from_le_bytes(number)).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        let text: String = bytes.chunks_exact(kind as usize).map(letter).collect();
        Ok(bounded(&text))
    }

    /// The bytes of a `bytes`.
    fn bytes(&self, object: u64) -> Vec<u8> {
        let length = self.pointer(object, SIZE).unwrap_or(0).min(MAX_TABLE);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = memory::read(self.pid, object.wrapping_add(BYTES), &mut bytes);
        bytes.truncate(read);
        bytes
    }

    fn byte(&self, address: u64, offset: u64) -> Option<u8> {
        let mut byte = [0];
        (memory::read(self.pid, address.wrapping_add(offset), &mut byte) == 1).then_some(byte[0])
    }

    fn pointer(&self, address: u64, offset: u64) -> Result<u64, String> {
        if Instant::now() >= self.deadline {
            return Err(
                "its structures take too long to read, as those that lead in circles".to_owned()
            );
        }
        let mut bytes = [0; 8];
        match memory::read(self.pid, address.wrapping_add(offset), &mut bytes) {
            8 => Ok(u64::from_ne_bytes(bytes)),
            _ => {
                Err(format!("{address:#x} is not mapped, as where it changes its stacks meanwhile"))
            }
        }
    }
}
