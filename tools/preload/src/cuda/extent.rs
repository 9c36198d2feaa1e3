//! How large an array is, by the structures that describe it. Pure.

use std::ffi::{c_int, c_uint};

/// `CUDA_ARRAY3D_LAYERED`: the third number is that of layers, which do not shrink from level to level.
const LAYERED: c_uint = 0x01;
/// `CUDA_ARRAY3D_SPARSE` and `…_DEFERRED_MAPPING`: memory is mapped there later, and counts where it is created.
const WITHOUT_MEMORY: c_uint = 0x40 | 0x80;

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
pub(crate) struct Plane {
    width: usize,
    height: usize,
    format: c_int,
    channels: c_uint,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
pub(crate) struct Volume {
    width: usize,
    height: usize,
    depth: usize,
    format: c_int,
    channels: c_uint,
    flags: c_uint,
}

impl Plane {
    /// The same, as a volume without depth.
    pub(crate) fn volume(&self) -> Volume {
        let Self { width, height, format, channels } = *self;
        Volume { width, height, depth: 0, format, channels, flags: 0 }
    }
}

impl Volume {
    /// Whether the driver gives it memory of its own.
    pub(crate) fn has_memory(&self) -> bool {
        self.flags & WITHOUT_MEMORY == 0
    }

    /// The bytes of all elements; none for a format that is not known.
    pub(crate) fn bytes(&self, levels: c_uint) -> Option<usize> {
        let element = element_bytes(self.format, self.channels)?;
        // As many as it takes until all numbers are 1; the driver makes no more, whatever it is asked for.
        let depth = if self.flags & LAYERED == 0 { self.depth } else { 1 };
        let longest = self.width.max(self.height).max(depth).max(1);
        let levels = levels.clamp(1, longest.ilog2() + 1);
        let of_level = |level: c_uint| {
            let halved = |count: usize| (count >> level).max(1);
            let depth = if self.flags & LAYERED == 0 { halved(self.depth) } else { self.depth };
            let elements = halved(self.width).saturating_mul(halved(self.height));
            elements.saturating_mul(depth).saturating_mul(element)
        };
        Some((0..levels).map(of_level).fold(0, usize::saturating_add))
    }
}

/// Bytes of an element, by `CUarray_format`.
fn element_bytes(format: c_int, channels: c_uint) -> Option<usize> {
    let of_channel = match format {
        // Whole numbers without a sign and with one, of 8, 16 and 32 bits; halves; floats.
        0x01 | 0x08 => 1,
        0x02 | 0x09 | 0x10 => 2,
        0x03 | 0x0a | 0x20 => 4,
        // Normalized ones of 8 and 16 bits, whose channels are in the name.
        0xc0 | 0xc6 => return Some(1),
        0xc1 | 0xc3 | 0xc7 | 0xc9 => return Some(2),
        0xc2 | 0xc4 | 0xc8 | 0xca => return Some(4),
        0xc5 | 0xcb => return Some(8),
        _ => return None,
    };
    usize::try_from(channels).ok()?.checked_mul(of_channel)
}

#[cfg(test)]
mod tests {
    use super::{Plane, Volume};

    #[test]
    fn an_array_has_the_bytes_of_its_elements() {
        let bytes = |(width, height, depth), (format, channels), flags, levels| {
            Volume { width, height, depth, format, channels, flags }.bytes(levels)
        };
        let (bytes_of_8, halves, floats) = (0x01, 0x10, 0x20);
        assert_eq!(bytes((100, 0, 0), (floats, 1), 0, 1), Some(400), "one dimension");
        assert_eq!(bytes((100, 50, 0), (halves, 4), 0, 1), Some(40_000));
        assert_eq!(bytes((10, 10, 10), (bytes_of_8, 2), 0, 1), Some(2_000));
        assert_eq!(bytes((8, 4, 0), (bytes_of_8, 1), 0, 9), Some(32 + 8 + 2 + 1), "four levels");
        assert_eq!(bytes((8, 4, 3), (bytes_of_8, 1), 1, 2), Some(96 + 24), "layers stay");
        assert_eq!(bytes((4, 4, 4), (bytes_of_8, 1), 0, 2), Some(64 + 8), "planes do not");
        assert_eq!(bytes((64, 64, 0), (0xc5, 4), 0, 1), Some(32_768));
        assert_eq!(bytes((64, 64, 0), (0x91, 4), 0, 1), None, "compressed blocks");
        assert_eq!(bytes((usize::MAX, 9, 9), (floats, 4), 0, 1), Some(usize::MAX));
    }

    #[test]
    fn a_plane_is_a_volume_and_what_is_mapped_later_has_no_memory() {
        let plane = Plane { width: 100, height: 50, format: 0x20, channels: 1 };
        let volume = plane.volume();
        assert_eq!((volume.bytes(1), volume.has_memory()), (Some(20_000), true));
        for flags in [0x40, 0x80, 0x81] {
            assert!(!Volume { flags, ..plane.volume() }.has_memory(), "{flags}");
        }
    }
}
