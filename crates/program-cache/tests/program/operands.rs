//! Each field of an operand's specification, changed alone, gives another key: nothing that a
//! factory is shown can be forgotten, and there is no address for it to be shown.

use telltale_program_cache::operand::{BufferSpace, Distribution, ShardOrientation, ShardSpec};
use telltale_program_cache::{
    DataFormat, KeyEncoder, KeyKind, Layout, MemoryConfig, OperandSpec, OwnedKey, ProgramKey, Tile,
};

use crate::program::example::range;
use crate::program::table::{Mutation, Rule, table};

fn operand() -> OperandSpec {
    let shards = ShardSpec {
        cores: range(0, 0, 1, 1).into(),
        shape: [64, 32],
        orientation: ShardOrientation::RowMajor,
    };
    OperandSpec {
        shape: [2, 3, 64].into(),
        data_format: DataFormat::BFloat16,
        layout: Layout::Tiled(Tile::STANDARD),
        memory: MemoryConfig {
            space: BufferSpace::L1,
            distribution: Distribution::Sharded(shards),
        },
    }
}

fn specifications() -> Vec<Mutation<OperandSpec>> {
    table!(OperandSpec {
        shape: [
            Keyed | shape | *shape = [3, 2, 64].into(),
            Keyed | shape | *shape = [2, 3, 64, 1].into(),
            Keyed | shape | *shape = [384].into(),
            Keyed | shape | *shape = [2, 3, 64, 0].into(),
            Keyed | shape | *shape = [2, 3, 64, 0, 0].into(),
        ],
        data_format: [
            Keyed | format | *format = DataFormat::Float16,
            Keyed | format | *format = DataFormat::Int32,
        ],
        layout: [Keyed | layout | *layout = Layout::RowMajor],
        memory: [Keyed | memory | *memory = MemoryConfig::DRAM],
    })
}

fn tiles() -> Vec<Mutation<Tile>> {
    table!(Tile {
        height: [Keyed | height | *height = 16],
        width: [Keyed | width | *width = 16],
        transposed: [Keyed | transposed | *transposed = true],
    })
}

fn memories() -> Vec<Mutation<MemoryConfig>> {
    table!(MemoryConfig {
        space: [Keyed | space | *space = BufferSpace::Dram],
        distribution: [Keyed | distribution | *distribution = Distribution::Interleaved],
    })
}

fn shards() -> Vec<Mutation<ShardSpec>> {
    table!(ShardSpec {
        cores: [
            Keyed | cores | *cores = range(0, 0, 3, 0).into(),
            Keyed | cores | *cores = range(1, 1, 2, 2).into(),
        ],
        shape: [Keyed | shape | shape.swap(0, 1)],
        orientation: [Keyed | orientation | *orientation = ShardOrientation::ColumnMajor],
    })
}

fn at<T: 'static>(
    table: Vec<Mutation<T>>,
    part: impl Fn(&mut OperandSpec) -> Option<&mut T>,
) -> Vec<(&'static str, OperandSpec)> {
    let changed = |mutation: Mutation<T>| {
        assert_eq!(mutation.rule, Rule::Keyed, "{}: nothing else is known", mutation.field);
        let mut changed = operand();
        (mutation.change)(part(&mut changed).expect("the example has every part"));
        (mutation.field, changed)
    };
    table.into_iter().map(changed).collect()
}

fn key_of(spec: &OperandSpec) -> OwnedKey {
    let mut encoder = KeyEncoder::new();
    encoder.begin(KeyKind::Operation);
    spec.encode(&mut encoder);
    encoder.key().to_owned()
}

#[test]
fn each_field_of_an_operand_is_in_the_key() {
    let mut specs = vec![("nothing", operand())];
    specs.extend(at(specifications(), |spec| Some(spec)));
    specs.extend(at(memories(), |spec| Some(&mut spec.memory)));
    specs.extend(at(tiles(), |spec| match &mut spec.layout {
        Layout::Tiled(tile) => Some(tile),
        Layout::RowMajor => None,
    }));
    specs.extend(at(shards(), |spec| match &mut spec.memory.distribution {
        Distribution::Sharded(shards) => Some(shards),
        Distribution::Interleaved => None,
    }));
    for (index, (one, spec)) in specs.iter().enumerate() {
        for (other, changed) in specs.iter().skip(index + 1) {
            assert_ne!(spec, changed);
            assert_ne!(key_of(spec), key_of(changed), "{one} and {other} have one key");
        }
    }
}
