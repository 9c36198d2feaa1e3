//! A program is never given the words of a description whose words stand elsewhere.

use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};
use telltale_program_cache::{
    CacheMode, CoreCoord, CoreRange, KernelConfig, KernelDescriptor, KernelSource,
    ProgramArguments, ProgramDescriptor, ReaderConfig, Updates,
};

use crate::cache::paper::cache;

/// Which cores are given how many words, kernel by kernel, and how many common words.
type Places = Vec<(Vec<(u16, u16, usize)>, usize)>;

fn places() -> impl Strategy<Value = Places> {
    let core = (0u16..3, 0u16..2, 0usize..3);
    let kernel = (proptest::collection::vec(core, 0..4), 0usize..3);
    proptest::collection::vec(kernel, 0..3)
}

fn described(places: &Places, first_word: u32) -> ProgramDescriptor {
    let mut word = first_word..;
    let mut next = |count: usize| word.by_ref().take(count).collect::<Vec<u32>>();
    let grid = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(2, 1));
    let kernels = places.iter().map(|(cores, common)| {
        let source = KernelSource::Text("".into());
        let config = KernelConfig::Reader(ReaderConfig {});
        let mut kernel = KernelDescriptor::new("any", source, grid, config);
        for (x, y, count) in cores {
            kernel.runtime_arguments.push(CoreCoord::new(*x, *y), &next(*count));
        }
        kernel.common_runtime_arguments = next(*common);
        kernel
    });
    ProgramDescriptor { kernels: kernels.collect(), ..ProgramDescriptor::default() }
}

proptest! {
    #[test]
    fn words_go_into_a_program_with_the_same_places_or_none(one in places(), other in places()) {
        let cache = cache(CacheMode::Check);
        let (first, second) = (described(&one, 0), described(&other, 1000));
        let serial = |descriptor: &ProgramDescriptor| {
            cache.dispatch_described(descriptor, |sheet| {
                let own = ProgramArguments::of(descriptor).expect("it has few words");
                (sheet.serial, sheet.arguments == own)
            })
        };
        prop_assert_eq!(serial(&first).expect("it can run"), (0, true));
        prop_assert_eq!(serial(&second).expect("it can run"), (u64::from(one != other), true));

        // Even with the key left out of it, words are refused rather than written elsewhere.
        let mut arguments = ProgramArguments::of(&first).expect("it has few words");
        let before = arguments.clone();
        let written = Updates::described(&second).write_to(&mut arguments);
        let fits = before.layout() == ProgramArguments::of(&second).expect("few").layout();
        prop_assert_eq!(written.is_ok(), fits);
        prop_assert!(fits || arguments == before);
    }
}
