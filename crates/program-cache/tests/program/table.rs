//! The table of a struct's fields that the mutation tests work through.

/// What a change must do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rule {
    /// The key differs.
    Keyed,
    /// The key stays, and the words follow.
    Value,
}

/// One change of one field.
pub(crate) struct Mutation<T> {
    pub(crate) field: &'static str,
    pub(crate) rule: Rule,
    pub(crate) change: fn(&mut T),
}

/// The table of a struct: for each field what its changes do, and some changes. Taking the struct
/// apart with all of these names and no others is what refuses a field without a rule.
macro_rules! table {
    ($type:ident { $($field:ident: [$($rule:ident |$part:ident| $change:expr),+ $(,)?]),* $(,)? }) => {{
        #[allow(dead_code)] // it is there to be compiled
        fn every_field(value: $type) {
            let $type { $($field: _),* } = value;
        }
        #[allow(unused_mut)]
        let mut table: Vec<$crate::program::table::Mutation<$type>> = Vec::new();
        $($(table.push($crate::program::table::Mutation {
            field: concat!(stringify!($type), ".", stringify!($field)),
            rule: $crate::program::table::Rule::$rule,
            change: |whole| {
 let $part = &mut whole.$field;
 $change;
 },
        });)+)*
        table
    }};
}

pub(crate) use table;
