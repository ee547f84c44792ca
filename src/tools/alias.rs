//! Other names of a tool: most are habits of other agents, some come with arguments, defaults and bounds of their own.

use super::arguments;
use crate::protocol::ToolError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A name that is accepted and never offered. `A` is what the tool takes.
pub(super) struct Alias<A> {
    pub name: &'static str,
    pub parse: fn(Map<String, Value>) -> Result<A, ToolError>,
    pub schema: fn() -> Value,
}

impl<A: DeserializeOwned + JsonSchema> Alias<A> {
    /// Another name for the same thing.
    pub(super) const fn same(name: &'static str) -> Self {
        Self { name, parse: arguments::parse::<A>, schema: arguments::schema::<A> }
    }
}

impl<A> Alias<A> {
    /// A name whose arguments are `B`: checked as such, then put into the words of the tool.
    pub(super) const fn of<B: DeserializeOwned + JsonSchema + Into<A>>(name: &'static str) -> Self {
        Self { name, parse: |given| arguments::parse::<B>(given).map(Into::into), schema: arguments::schema::<B> }
    }
}
