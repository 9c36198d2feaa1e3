//! Where each CPython keeps what stacks are read from.
//!
//! CPython 3.13 and later say so themselves: `_PyRuntime` begins with a table of offsets
//! (`Include/internal/pycore_debug_offsets.h`). The layouts before it are final; their offsets are those
//! of the headers of 3.8 to 3.12 on 64-bit Linux, by `offsetof`.

/// Bytes of the table that are read.
pub(super) const TABLE_BYTES: usize = 64 * 8;
/// How the table begins.
const COOKIE: &[u8; 8] = b"xdebugpy";

/// Offsets, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PythonLayout {
    /// `_PyRuntime.interpreters.head`.
    pub(super) interpreters: u64,
    /// `PyInterpreterState.next`.
    pub(super) next_interpreter: u64,
    /// `PyInterpreterState.threads.head`.
    pub(super) threads: u64,
    pub(super) gil: Gil,
    pub(super) thread: ThreadLayout,
    pub(super) frame: FrameLayout,
    pub(super) code: CodeLayout,
    pub(super) text: TextLayout,
}

/// Where the thread that has the interpreter's lock is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gil {
    /// `_PyRuntime.gilstate.tstate_current`.
    Runtime(u64),
    /// `PyInterpreterState.ceval.gil`, and in what that points at the holder and whether it is locked.
    Interpreter { pointer: u64, holder: u64, locked: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadLayout {
    pub(super) next: u64,
    pub(super) pthread: u64,
    /// Since 3.11.
    pub(super) native_id: Option<u64>,
    pub(super) frame: Current,
}

/// How a thread's innermost frame is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Current {
    /// By a pointer in the thread's state.
    Direct(u64),
    /// By `cframe`, and in that a pointer.
    ByCFrame(u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameLayout {
    pub(super) back: u64,
    /// The code; since 3.14 with marks in its lowest bits.
    pub(super) code: u64,
    pub(super) position: Position,
    /// Since 3.11; frames owned by C from the number on are none of Python.
    pub(super) owner: Option<(u64, u8)>,
}

/// How the instruction of a frame is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// `f_lasti`, in instructions of so many bytes.
    Index { offset: u64, bytes: u64 },
    /// A pointer into the code, whose first instruction is at this offset of the code object.
    Pointer { offset: u64, first: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeLayout {
    pub(super) file: u64,
    /// The qualified name since 3.11.
    pub(super) name: u64,
    pub(super) first_line: u64,
    pub(super) lines: u64,
    pub(super) format: LineFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLayout {
    /// Bytes before the letters of a compact text of ASCII.
    pub(super) ascii: u64,
    /// The same of other letters.
    pub(super) other: u64,
    /// The lowest bit of `kind` in the state, behind `interned`.
    pub(super) kind: u32,
}

/// How a code object maps instructions to lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFormat {
    /// `co_lnotab`, up to 3.9.
    Lnotab,
    /// `co_linetable` of 3.10 (PEP 626).
    Ranges,
    /// `co_linetable` since 3.11 (`Objects/locations.md`).
    Locations,
}

impl PythonLayout {
    /// The layout of a version before 3.13; none where it is not known.
    pub(super) const fn of(minor: u32) -> Option<Self> {
        Some(match minor {
            8 => Self::of_frame_objects(1368, 104, 1, LineFormat::Lnotab),
            9 => Self::of_frame_objects(568, 104, 1, LineFormat::Lnotab),
            // Since 3.10 `f_lasti` counts instructions of two bytes.
            10 => Self::of_frame_objects(568, 96, 2, LineFormat::Ranges),
            11 => Self {
                interpreters: 40,
                next_interpreter: 0,
                threads: 16,
                gil: Gil::Runtime(576),
                thread: ThreadLayout {
                    next: 8,
                    pthread: 152,
                    native_id: Some(160),
                    frame: Current::ByCFrame(56, 8),
                },
                frame: FrameLayout {
                    back: 48,
                    code: 32,
                    position: Position::Pointer { offset: 56, first: 184 },
                    owner: Some((69, u8::MAX)),
                },
                code: CodeLayout {
                    file: 112,
                    name: 128,
                    first_line: 72,
                    lines: 136,
                    format: LineFormat::Locations,
                },
                text: TextLayout { ascii: 48, other: 72, kind: 2 },
            },
            12 => Self {
                interpreters: 40,
                next_interpreter: 0,
                threads: 72,
                gil: Gil::Interpreter { pointer: 384, holder: 8, locked: 16 },
                thread: ThreadLayout {
                    next: 8,
                    pthread: 136,
                    native_id: Some(144),
                    frame: Current::ByCFrame(56, 0),
                },
                frame: FrameLayout {
                    back: 8,
                    code: 0,
                    position: Position::Pointer { offset: 56, first: 192 },
                    owner: Some((70, 3)),
                },
                code: CodeLayout {
                    file: 112,
                    name: 128,
                    first_line: 68,
                    lines: 136,
                    format: LineFormat::Locations,
                },
                text: TextLayout { ascii: 40, other: 56, kind: 2 },
            },
            _ => return None,
        })
    }

    /// 3.8 to 3.10, whose frames are objects.
    const fn of_frame_objects(current: u64, last: u64, bytes: u64, format: LineFormat) -> Self {
        Self {
            interpreters: 32,
            next_interpreter: 0,
            threads: 8,
            gil: Gil::Runtime(current),
            thread: ThreadLayout {
                next: 8,
                pthread: 176,
                native_id: None,
                frame: Current::Direct(24),
            },
            frame: FrameLayout {
                back: 24,
                code: 32,
                position: Position::Index { offset: last, bytes },
                owner: None,
            },
            code: CodeLayout { file: 104, name: 112, first_line: 40, lines: 120, format },
            text: TextLayout { ascii: 48, other: 72, kind: 2 },
        }
    }

    /// The layout and the version that an interpreter describes itself, where `table` is how its
    /// `_PyRuntime` begins; none where that is no such table, or of a version whose table is not known.
    pub(super) fn described(table: &[u8]) -> Option<(Self, u32)> {
        if table.get(..8)? != COOKIE {
            return None;
        }
        let word =
            |place: usize| Some(u64::from_ne_bytes(*table.get(place * 8..)?.first_chunk::<8>()?));
        let version = u32::try_from(word(1)?).ok()?;
        // Without the lock no thread has it, and much else is different.
        if word(2)? != 0 {
            return None;
        }
        // Places of: next interpreter, threads, gil, _gil, locked, holder; next thread, frame, pthread, native id;
        // previous, executable, instruction, owner; file, qualified name, lines, first line, code.
        let (places, kind): ([usize; 19], u32) = match version >> 16 {
            0x030d => {
                ([8, 9, 14, 15, 17, 18, 21, 23, 24, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43], 2)
            }
            0x030e => {
                ([8, 9, 15, 16, 18, 19, 24, 26, 27, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48], 16)
            }
            _ => return None,
        };
        let mut words = [0; 19];
        for (word_of, place) in words.iter_mut().zip(places) {
            *word_of = word(place)?;
        }
        let [
            next_interpreter,
            threads,
            pointer,
            gil,
            locked,
            holder,
            next,
            frame,
            pthread,
            native_id,
            ..,
        ] = words;
        let [.., back, code, instruction, owner, file, name, lines, first_line, first] = words;
        let layout = Self {
            interpreters: word(5)?,
            next_interpreter,
            threads,
            gil: Gil::Interpreter {
                pointer,
                holder: holder.checked_sub(gil)?,
                locked: locked.checked_sub(gil)?,
            },
            thread: ThreadLayout {
                next,
                pthread,
                native_id: Some(native_id),
                frame: Current::Direct(frame),
            },
            frame: FrameLayout {
                back,
                code,
                position: Position::Pointer { offset: instruction, first },
                owner: Some((owner, 3)),
            },
            code: CodeLayout { file, name, first_line, lines, format: LineFormat::Locations },
            text: TextLayout { ascii: 40, other: 56, kind },
        };
        Some((layout, version))
    }
}
