//! Alternative tool names. Most follow the conventions of other coding agents, and some have arguments, defaults and
//! limits of their own.

use super::arguments;
use crate::protocol::ToolError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// An alias that is accepted but never offered. `A` is the tool's argument type.
pub(super) struct Alias<A> {
    pub name: &'static str,
    pub parse: fn(Map<String, Value>) -> Result<A, ToolError>,
    pub schema: fn() -> Value,
}

impl<A: DeserializeOwned + JsonSchema> Alias<A> {
    /// Creates an alias that has the same arguments as the tool.
    pub(super) const fn with_same_arguments(name: &'static str) -> Self {
        Self { name, parse: arguments::parse::<A>, schema: arguments::schema::<A> }
    }
}

impl<A> Alias<A> {
    /// Creates an alias with arguments of type `B`, which are parsed and then converted to the tool's arguments.
    pub(super) const fn new<B: DeserializeOwned + JsonSchema + Into<A>>(name: &'static str) -> Self {
        Self { name, parse: |given| arguments::parse::<B>(given).map(Into::into), schema: arguments::schema::<B> }
    }
}
