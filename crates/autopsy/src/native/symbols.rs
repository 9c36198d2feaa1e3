//! Names of functions, found in one pass over each file's symbols for all addresses within it.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol, SymbolKind};

use super::modules::{MappedModule, Modules};
use super::names::readable;
use crate::evidence::NativeFrame;

/// Names and addresses of all stacks.
pub(super) fn named(
    modules: &Modules,
    unwound: Vec<(u32, Vec<u64>)>,
) -> BTreeMap<u32, Vec<NativeFrame>> {
    let mut wanted: BTreeMap<u64, BTreeMap<u64, Option<String>>> = BTreeMap::new();
    for address in unwound.iter().flat_map(|(_, addresses)| addresses) {
        if let Some(module) = modules.at(*address) {
            wanted.entry(module.range.start).or_default().insert(*address, None);
        }
    }
    for (start, addresses) in &mut wanted {
        if let Some(module) = modules.mapped.get(start) {
            find(module, addresses);
        }
    }
    let frame = |address: &u64| match modules.at(*address) {
        Some(module) => NativeFrame {
            function: wanted.get(&module.range.start).and_then(|found| found.get(address)?.clone()),
            module: module.name.clone(),
            offset: address.wrapping_sub(module.bias),
        },
        None => NativeFrame { function: None, module: "[no file]".to_owned(), offset: *address },
    };
    let named = |(tid, addresses): &(u32, Vec<u64>)| (*tid, addresses.iter().map(frame).collect());
    unwound.iter().map(named).collect()
}

/// Names each address by the function that covers it.
fn find(module: &MappedModule, addresses: &mut BTreeMap<u64, Option<String>>) {
    let Some(file) = &module.file else { return };
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(&file[..]) else { return };
    for symbol in elf.dynamic_symbols().chain(elf.symbols()) {
        if symbol.kind() != SymbolKind::Text || symbol.size() == 0 {
            continue;
        }
        let start = symbol.address().wrapping_add(module.bias);
        let Some(end) = start.checked_add(symbol.size()) else { continue };
        for (_, name) in addresses.range_mut(start..end) {
            if name.is_none() {
                *name = symbol.name().ok().map(readable);
            }
        }
    }
}
