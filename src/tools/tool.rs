//! The interface that tools implement. A tool turns typed arguments into actions and work to be done later.

use super::alias::Alias;
use super::annotations;
use super::annotations::ToolHints;
use super::arguments;
use super::call_result::CallResult;
use super::draft::CallDraft;
use super::error::amendment_error;
use super::paths::Paths;
use super::settings::ToolSettings;
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, Amendable, Amendment, ErrorCode, PlaceChange, ToolError};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// A tool. To add one, create a type that implements this trait and add it to the registry.
pub(super) trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    /// Names that other agents use for the tool. They are accepted, but not listed.
    const ALIASES: &'static [Alias<Self::Arguments>];
    const CAPABILITY: &'static str;
    const DESCRIPTION: &'static str;
    /// Whether the tool writes to the very file in which secrets were redacted, and can therefore restore them from
    /// their markers.
    const RESTORES: bool = false;
    type Arguments: DeserializeOwned + JsonSchema + 'static;
    type Work: Send + 'static;

    /// Returns the actions of a call, which the policy checks.
    fn actions(arguments: &Self::Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError>;
    /// Drafts a call. Drafting may read files, but their content is shown only to the user, in the approval prompt.
    fn draft(arguments: Self::Arguments, settings: &ToolSettings) -> Result<CallDraft<Self::Work>, ToolError>;
    /// Returns the states of the paths to be changed, before and after the call, if they are known in advance.
    fn planned_changes(work: &Self::Work) -> Vec<PlaceChange> {
        let _ = work;
        Vec::new()
    }
    /// Returns the text of every changed file before and after the call, if both are known.
    fn proposed_texts(work: &Self::Work) -> Vec<ProposedText> {
        let _ = work;
        Vec::new()
    }
    /// Returns the parts that the user may edit, along with the resulting content of each file.
    fn amendable(work: &Self::Work, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        let _ = (work, settings);
        (Amendable::default(), Vec::new())
    }
    /// Applies the user's edits. Returns the new draft and a note about the edits for the model.
    fn amend(
        work: Self::Work,
        amendment: &Amendment,
        settings: &ToolSettings,
    ) -> Result<(CallDraft<Self::Work>, String), ToolError> {
        let _ = (work, amendment, settings);
        Err(amendment_error())
    }
    fn run(work: Self::Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult>;
}

pub(super) type Payload = Box<dyn Any + Send>;

/// A tool without its type parameters, so it can be stored in lists.
pub(super) trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    /// Returns the name under which the tool is offered to the model.
    fn offered_name(&self) -> &str {
        self.name()
    }
    fn alias_names(&self) -> Vec<&'static str>;
    fn capability(&self) -> &'static str;
    fn description(&self) -> &str;
    fn restores(&self) -> bool;
    /// Returns the hints that other agents receive, or `None` if the tool is not available to them.
    fn hints(&self) -> Option<ToolHints> {
        None
    }
    /// Returns the schema of the arguments that the tool takes under this name.
    fn schema(&self, called: &str) -> Value;
    /// Returns the JSON Schema of the output, provided that the output always matches one.
    fn output_schema(&self) -> Option<Value> {
        None
    }
    fn actions(&self, called: &str, arguments: Map<String, Value>, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError>;
    fn draft(
        &self,
        called: &str,
        arguments: Map<String, Value>,
        settings: &ToolSettings,
    ) -> Result<CallDraft<Payload>, ToolError>;
    fn planned_changes(&self, payload: &Payload) -> Vec<PlaceChange> {
        let _ = payload;
        Vec::new()
    }
    fn proposed_texts(&self, payload: &Payload) -> Vec<ProposedText> {
        let _ = payload;
        Vec::new()
    }
    fn amendable(&self, payload: &Payload, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        let _ = (payload, settings);
        (Amendable::default(), Vec::new())
    }
    fn amend(
        &self,
        payload: Payload,
        amendment: &Amendment,
        settings: &ToolSettings,
    ) -> Result<(CallDraft<Payload>, String), ToolError> {
        let _ = (payload, amendment, settings);
        Err(amendment_error())
    }
    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult>;
}

/// A tool in a toolset.
pub(super) type SharedTool = Arc<dyn AnyTool>;

pub(super) struct ErasedTool<T>(pub PhantomData<T>);

impl<T: Tool> ErasedTool<T> {
    /// Returns the alias with this name, or `None` for the tool's own name.
    fn alias(called: &str) -> Option<&'static Alias<T::Arguments>> {
        if called == T::NAME {
            return None;
        }
        let exact = T::ALIASES.iter().find(|alias| alias.name == called);
        exact.or_else(|| T::ALIASES.iter().find(|alias| alias.name.eq_ignore_ascii_case(called)))
    }

    fn parse(called: &str, arguments: Map<String, Value>) -> Result<T::Arguments, ToolError> {
        Self::alias(called).map_or(arguments::parse as fn(_) -> _, |alias| alias.parse)(arguments)
    }
}

impl<T: Tool> AnyTool for ErasedTool<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn alias_names(&self) -> Vec<&'static str> {
        T::ALIASES.iter().map(|alias| alias.name).collect()
    }

    fn capability(&self) -> &'static str {
        T::CAPABILITY
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION.trim_end()
    }

    fn restores(&self) -> bool {
        T::RESTORES
    }

    fn hints(&self) -> Option<ToolHints> {
        annotations::hints_for(T::NAME)
    }

    fn schema(&self, called: &str) -> Value {
        Self::alias(called).map_or(arguments::schema::<T::Arguments> as fn() -> _, |alias| alias.schema)()
    }

    fn actions(&self, called: &str, arguments: Map<String, Value>, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        T::actions(&Self::parse(called, arguments)?, paths)
    }

    fn draft(
        &self,
        called: &str,
        arguments: Map<String, Value>,
        settings: &ToolSettings,
    ) -> Result<CallDraft<Payload>, ToolError> {
        T::draft(Self::parse(called, arguments)?, settings).map(|draft| draft.map(|work| Box::new(work) as Payload))
    }

    fn amendable(&self, payload: &Payload, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        payload.downcast_ref::<T::Work>().map(|work| T::amendable(work, settings)).unwrap_or_default()
    }

    fn amend(
        &self,
        payload: Payload,
        amendment: &Amendment,
        settings: &ToolSettings,
    ) -> Result<(CallDraft<Payload>, String), ToolError> {
        let Ok(work) = payload.downcast::<T::Work>() else { return Err(amendment_error()) };
        T::amend(*work, amendment, settings).map(|(draft, told)| (draft.map(|work| Box::new(work) as Payload), told))
    }

    fn planned_changes(&self, payload: &Payload) -> Vec<PlaceChange> {
        payload.downcast_ref::<T::Work>().map(T::planned_changes).unwrap_or_default()
    }

    fn proposed_texts(&self, payload: &Payload) -> Vec<ProposedText> {
        payload.downcast_ref::<T::Work>().map(T::proposed_texts).unwrap_or_default()
    }

    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        if let Ok(work) = payload.downcast::<T::Work>() {
            return T::run(*work, settings, context);
        }
        let error = ToolError::new(ErrorCode::ToolExecutionFailed, "the plan belongs to another router; plan the call again");
        futures_util::future::ready(Err(error.into())).boxed()
    }
}
