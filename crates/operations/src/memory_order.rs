//! Where a tensor's elements are in its buffer: row after row, or in tiles of 32 rows and columns
//! with zeros beyond the edges. Pure arithmetic on host memory; it touches no device.

use telltale_program_cache::{DataFormat, Layout, OperandSpec};

use crate::bfloat;
use crate::extents::Extents;

/// Rows and columns of a tile.
pub const TILE: u32 = 32;

/// The bytes of one element.
#[must_use]
pub(crate) fn element_bytes(format: DataFormat) -> u32 {
    match format {
        DataFormat::UInt8 => 1,
        DataFormat::BFloat16 | DataFormat::Float16 | DataFormat::UInt16 => 2,
        _ => 4,
    }
}

/// How many elements a buffer has room for, those beyond the edges of tiles included.
#[must_use]
pub(crate) fn stored_elements(spec: &OperandSpec) -> u64 {
    let extents = Extents::of(&spec.shape);
    let (rows, columns) = match spec.layout {
        Layout::RowMajor => (extents.rows(), extents.columns()),
        Layout::Tiled(_) => {
            (extents.rows().next_multiple_of(TILE), extents.columns().next_multiple_of(TILE))
        }
    };
    u64::from(extents.matrices()) * u64::from(rows) * u64::from(columns)
}

/// The bytes of a page: a tile, or a row.
#[must_use]
pub fn page_bytes(spec: &OperandSpec) -> u32 {
    let elements = match spec.layout {
        Layout::RowMajor => Extents::of(&spec.shape).columns(),
        Layout::Tiled(_) => TILE * TILE,
    };
    elements.max(1) * element_bytes(spec.data_format)
}

/// Puts elements in row-major order into the order of a buffer, as bytes.
#[must_use]
pub(crate) fn pack<T: Copy>(
    spec: &OperandSpec,
    elements: &[T],
    put: impl Fn(T, &mut Vec<u8>),
) -> Vec<u8> {
    let bytes = element_bytes(spec.data_format) as usize;
    if spec.layout == Layout::RowMajor {
        let mut packed = Vec::with_capacity(elements.len() * bytes);
        elements.iter().for_each(|element| put(*element, &mut packed));
        return packed;
    }
    let mut packed = Vec::new();
    for place in TilePlaces::new(spec) {
        match place.and_then(|index| elements.get(index)) {
            Some(element) => put(*element, &mut packed),
            None => packed.resize(packed.len() + bytes, 0),
        }
    }
    packed
}

/// Takes elements in row-major order out of a buffer's bytes. `bytes` must be as long as the
/// buffer.
#[must_use]
pub(crate) fn unpack<T: Copy + Default>(
    spec: &OperandSpec,
    bytes: &[u8],
    take: impl Fn(&[u8]) -> T,
) -> Vec<T> {
    let stored = bytes.chunks_exact(element_bytes(spec.data_format) as usize).map(take);
    if spec.layout == Layout::RowMajor {
        return stored.collect();
    }
    let count = Extents::of(&spec.shape).element_count();
    let mut elements = vec![T::default(); usize::try_from(count).expect("it is in memory")];
    for (place, element) in TilePlaces::new(spec).zip(stored) {
        if let Some(index) = place {
            elements[index] = element;
        }
    }
    elements
}

/// The same for elements that are bytes, in any format.
#[must_use]
pub(crate) fn pack_elements(spec: &OperandSpec, elements: &[u8]) -> Vec<u8> {
    if spec.layout == Layout::RowMajor {
        return elements.to_vec();
    }
    let elements: Vec<&[u8]> =
        elements.chunks_exact(element_bytes(spec.data_format) as usize).collect();
    pack(spec, &elements, |element, packed: &mut Vec<u8>| packed.extend_from_slice(element))
}

/// The same for elements that are bytes, in any format.
#[must_use]
pub(crate) fn unpack_elements(spec: &OperandSpec, bytes: Vec<u8>) -> Vec<u8> {
    if spec.layout == Layout::RowMajor {
        return bytes;
    }
    match element_bytes(spec.data_format) {
        1 => unpack_sized::<1>(spec, &bytes),
        2 => unpack_sized::<2>(spec, &bytes),
        _ => unpack_sized::<4>(spec, &bytes),
    }
}

fn unpack_sized<const SIZE: usize>(spec: &OperandSpec, bytes: &[u8]) -> Vec<u8>
where
    [u8; SIZE]: Default,
{
    let take = |element: &[u8]| element.try_into().unwrap_or_default();
    unpack::<[u8; SIZE]>(spec, bytes, take).concat()
}

/// Appends a number in the tensor's format.
pub(crate) fn put_number(format: DataFormat) -> impl Fn(f32, &mut Vec<u8>) {
    move |value, bytes| {
        if format == DataFormat::BFloat16 {
            bytes.extend_from_slice(&bfloat::narrow(value).to_le_bytes());
        } else {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// The number that these two or four bytes are.
pub(crate) fn take_number(bytes: &[u8]) -> f32 {
    match *bytes {
        [low, high] => bfloat::widen(u16::from_le_bytes([low, high])),
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
        _ => unreachable!("elements have two or four bytes"),
    }
}

/// For each element of a tiled buffer in turn, its place in row-major order, or none beyond an
/// edge.
struct TilePlaces {
    matrices: u32,
    rows: u32,
    columns: u32,
    next: [u32; 5],
}

impl TilePlaces {
    fn new(spec: &OperandSpec) -> Self {
        let extents = Extents::of(&spec.shape);
        Self {
            matrices: extents.matrices(),
            rows: extents.rows(),
            columns: extents.columns(),
            next: [0; 5],
        }
    }
}

impl Iterator for TilePlaces {
    type Item = Option<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let [matrix, down, across, inner_row, inner_column] = self.next;
        if matrix >= self.matrices || self.rows == 0 || self.columns == 0 {
            return None;
        }
        let limits =
            [self.matrices, self.rows.div_ceil(TILE), self.columns.div_ceil(TILE), TILE, TILE];
        for index in (0..5).rev() {
            self.next[index] += 1;
            if self.next[index] < limits[index] || index == 0 {
                break;
            }
            self.next[index] = 0;
        }
        let (row, column) = (down * TILE + inner_row, across * TILE + inner_column);
        let inside = row < self.rows && column < self.columns;
        Some(inside.then(|| {
            let row = matrix as usize * self.rows as usize + row as usize;
            row * self.columns as usize + column as usize
        }))
    }
}

#[cfg(test)]
mod tests {
    use telltale_program_cache::{DataFormat, Layout, MemoryConfig, OperandSpec, Shape, Tile};

    use super::{
        pack, pack_elements, put_number, stored_elements, take_number, unpack, unpack_elements,
    };

    fn spec(shape: &[u32], data_format: DataFormat, layout: Layout) -> OperandSpec {
        OperandSpec { shape: Shape::new(shape), data_format, layout, memory: MemoryConfig::DRAM }
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        for shape in [&[][..], &[1], &[33], &[2, 3], &[3, 32, 32], &[2, 3, 40, 70]] {
            for format in [DataFormat::Float32, DataFormat::BFloat16] {
                for layout in [Layout::RowMajor, Layout::Tiled(Tile::STANDARD)] {
                    let spec = spec(shape, format, layout);
                    let count: u32 = shape.iter().product();
                    // Small whole numbers are exact in both formats.
                    let elements: Vec<f32> = (0..count).map(|i| (i % 251) as f32).collect();
                    let bytes = pack(&spec, &elements, put_number(format));
                    let element = if format == DataFormat::Float32 { 4 } else { 2 };
                    assert_eq!(bytes.len() as u64, stored_elements(&spec) * element);
                    assert_eq!(unpack(&spec, &bytes, take_number), elements, "{spec:?}");
                    let raw = unpack_elements(&spec, bytes.clone());
                    assert_eq!(raw.len(), elements.len() * element as usize);
                    assert_eq!(pack_elements(&spec, &raw), bytes);
                }
            }
        }
    }

    #[test]
    fn a_tile_is_32_rows_of_32_columns() {
        let spec = spec(&[33, 33], DataFormat::Float32, Layout::Tiled(Tile::STANDARD));
        let elements: Vec<f32> = (0..33 * 33).map(|i| i as f32).collect();
        let bytes = pack(&spec, &elements, put_number(DataFormat::Float32));
        let stored: Vec<f32> = bytes.chunks_exact(4).map(take_number).collect();
        assert_eq!(stored[0..2], [0.0, 1.0]);
        assert_eq!(stored[32], 33.0, "the second row of the first tile");
        assert_eq!(stored[1024], 32.0, "the first element of the second tile");
        assert_eq!(stored[1025], 0.0, "beyond the edge");
        assert_eq!(stored[2048], 32.0 * 33.0, "the third tile begins with row 32");
    }
}
