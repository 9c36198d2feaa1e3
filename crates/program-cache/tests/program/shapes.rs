//! The shapes for which upstream's 32-bit hash collided, as operands of one operation.

use telltale_program_cache::{
    DataFormat, Key, KeyEncoder, KeyKind, Layout, MemoryConfig, OperandSpec, ProgramKey, Shape,
    Tile,
};

fn key_of<'a>(encoder: &'a mut KeyEncoder, spec: &OperandSpec) -> Key<'a> {
    encoder.begin(KeyKind::Operation);
    spec.encode(encoder);
    encoder.key()
}

fn operand(shape: Shape) -> OperandSpec {
    OperandSpec {
        shape,
        data_format: DataFormat::BFloat16,
        layout: Layout::Tiled(Tile::STANDARD),
        memory: MemoryConfig::DRAM,
    }
}

fn shape_at(place: u32) -> Shape {
    let side = |power: u32| place / SIDES.pow(power) % SIDES;
    Shape::from([side(3), side(2), side(1), side(0)])
}

/// How many sizes each of the four dimensions has: 2.56 million shapes.
const SIDES: u32 = 40;

#[test]
fn no_two_shapes_have_one_key() {
    let mut encoder = KeyEncoder::new();
    let mut spec = operand(Shape::default());
    let mut found: Vec<(u64, u32)> = (0..SIDES.pow(4))
        .map(|place| {
            spec.shape = shape_at(place);
            (key_of(&mut encoder, &spec).hash(), place)
        })
        .collect();
    assert_eq!(found.len(), SIDES.pow(4) as usize);
    // Keys with equal bytes have equal hashes, so a wrong hit would be among neighbours.
    found.sort_unstable();
    let mut collisions = 0;
    for equal in found.chunk_by(|one, two| one.0 == two.0).filter(|equal| equal.len() > 1) {
        collisions += equal.len() - 1;
        let mut keys: Vec<_> = equal
            .iter()
            .map(|(_, place)| key_of(&mut encoder, &operand(shape_at(*place))).to_owned())
            .collect();
        keys.sort_unstable_by(|one, two| one.bytes().cmp(two.bytes()));
        assert!(keys.is_sorted_by(|one, two| one.bytes() < two.bytes()), "a wrong hit: {keys:?}");
    }
    // 2.56 million keys of 64 bits collide once in about 5.6 million such runs.
    println!("{} shapes, {collisions} collisions of the hash, no wrong hit", found.len());
    assert!(collisions <= 1, "{collisions} collisions: the hash is weak");
}

fn assert_distinguished(one: &[u32], two: &[u32]) {
    let (mut first, mut second) = (KeyEncoder::new(), KeyEncoder::new());
    let one = key_of(&mut first, &operand(Shape::new(one)));
    let two = key_of(&mut second, &operand(Shape::new(two)));
    assert_ne!(one, two);
    assert_ne!(one.hash(), two.hash());
}

#[test]
fn issue_45821_shapes_3_17_and_1_152() {
    assert_distinguished(&[3, 17, 1, 1], &[1, 152, 1, 1]);
}

#[test]
fn issue_45089_shapes_1_1_1_64_and_1_4_64_64() {
    assert_distinguished(&[1, 1, 1, 64], &[1, 4, 64, 64]);
}

#[test]
fn issue_55167_dimensions_not_their_product() {
    assert_distinguished(&[2, 3], &[3, 2]);
    assert_distinguished(&[6], &[2, 3]);
    assert_distinguished(&[1, 6], &[6]);
    assert_distinguished(&[0], &[0, 0]);
    assert_distinguished(&[], &[1]);
}
