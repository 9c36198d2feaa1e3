//! `#[derive(ProgramKey)]`: writes a type into a program's key, field by field as it is defined.
//! There is no attribute that leaves a field out, and none that changes how one is written.
#![forbid(unsafe_code)]

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{
    Data, DataEnum, DeriveInput, Error, Fields, GenericParam, Generics, Ident, Result, parse_quote,
};

/// Implements `telltale_program_cache::ProgramKey` for a struct or an enum.
///
/// Every field is written, in the order of the definition; an enum's variant comes first. The type
/// itself is written by its path, its place in the source, the version of its package as Cargo
/// tells it, and its parameters, so that two types with equal fields have different keys, also
/// those of two versions of one crate. Each type parameter must itself be a `ProgramKey`.
/// A field whose type has no key does not compile, and a union has none.
#[proc_macro_derive(ProgramKey)]
pub fn derive_program_key(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    implementation(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let generics = with_bounds(input.generics.clone());
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let type_parameters = write_parameters(&input.generics);
    let value = match &input.data {
        Data::Struct(data) => {
            let (pattern, writes) = fields(&data.fields);
            quote! { let Self #pattern = self; #writes }
        }
        Data::Enum(data) => variants(name, data)?,
        Data::Union(_) => {
            let message = "a union has no key: which of its fields is meant is not known";
            return Err(Error::new_spanned(name, message));
        }
    };
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::telltale_program_cache::ProgramKey for #name #arguments #conditions {
            fn encode_type(encoder: &mut ::telltale_program_cache::KeyEncoder) {
                encoder.type_name(::core::concat!(
                    ::core::module_path!(), "::", ::core::stringify!(#name),
                    "@", ::core::line!(), ":", ::core::column!()
                ));
                encoder.text(::core::option_env!("CARGO_PKG_VERSION").unwrap_or_default());
                #type_parameters
            }

            fn encode_value(&self, encoder: &mut ::telltale_program_cache::KeyEncoder) {
                #value
            }
        }
    })
}

/// The generics with the bound that lets each type parameter be written.
fn with_bounds(mut generics: Generics) -> Generics {
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::telltale_program_cache::ProgramKey));
    }
    generics
}

fn write_parameters(generics: &Generics) -> TokenStream {
    generics
        .params
        .iter()
        .map(|parameter| match parameter {
            GenericParam::Lifetime(_) => TokenStream::new(),
            GenericParam::Type(parameter) => {
                let name = &parameter.ident;
                quote! { <#name as ::telltale_program_cache::ProgramKey>::encode_type(encoder); }
            }
            GenericParam::Const(parameter) => {
                let name = &parameter.ident;
                quote! { ::telltale_program_cache::ProgramKey::encode(&#name, encoder); }
            }
        })
        .collect()
}

/// A pattern that takes every field apart, and what writes them.
fn fields(fields: &Fields) -> (TokenStream, TokenStream) {
    let bindings: Vec<Ident> =
        (0..fields.len()).map(|index| format_ident!("field_{index}")).collect();
    // In the place of the field's type, so that the compiler points there where the type has no key.
    let writes = fields.iter().zip(&bindings).map(|(field, binding)| {
        quote_spanned! { field.ty.span() =>
            ::telltale_program_cache::ProgramKey::encode_value(#binding, encoder);
        }
    });
    let writes = quote! {
        #(#writes)*
        let _ = encoder;
    };
    let pattern = match fields {
        Fields::Named(named) => {
            let names = named.named.iter().map(|field| &field.ident);
            quote! { { #(#names: #bindings),* } }
        }
        Fields::Unnamed(_) => quote! { ( #(#bindings),* ) },
        Fields::Unit => TokenStream::new(),
    };
    (pattern, writes)
}

fn variants(name: &Ident, data: &DataEnum) -> Result<TokenStream> {
    if data.variants.is_empty() {
        return Ok(quote! { let _ = encoder; match *self {} });
    }
    let mut arms = TokenStream::new();
    for (index, variant) in data.variants.iter().enumerate() {
        let index = u16::try_from(index)
            .map_err(|_| Error::new_spanned(name, "an enum with more than 65,536 variants"))?;
        let (pattern, writes) = fields(&variant.fields);
        let variant = &variant.ident;
        arms.extend(quote! { Self::#variant #pattern => { encoder.variant(#index); #writes } });
    }
    Ok(quote! { match self { #arms } })
}
