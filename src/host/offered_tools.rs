//! The tools that the model is offered under a policy, and the tools that a front end lists.

use crate::policy::Enforcer;
use crate::ports::ToolRouter;
use crate::protocol::ToolDefinition;
use crate::tools::Router;

/// Returns the tools for the model: tools with a granted capability that no layer disables.
pub(crate) fn tools_for_model(router: &Router, policy: &Enforcer) -> Vec<ToolDefinition> {
    router.definitions().into_iter().filter(|tool| is_granted(&tool.tool_name, router, policy)).collect()
}

/// Returns the names of these tools, and of the tools that the model can load.
pub(crate) fn available(router: &Router, policy: &Enforcer) -> Vec<String> {
    router.available().into_iter().filter(|name| is_granted(name, router, policy)).collect()
}

fn is_granted(name: &str, router: &Router, policy: &Enforcer) -> bool {
    let granted = router.capability(name).is_some_and(|capability| policy.grants(capability));
    granted && policy.offers(router.full_name(name).as_deref().unwrap_or(name)).is_ok()
}
