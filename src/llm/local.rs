//! Local models, which are offered by model servers on this machine. The servers are queried when the first request is
//! made.

use super::ProviderSpec;
use super::catalogue::Catalogue;
use super::local_discovery::{LocalServer, local_servers};
use super::remote::Remote;
use crate::ports::{BoxFuture, Model, ModelError, ModelRequest, ModelStream};
use crate::protocol::{Failure, FailureKind, ModelFacts};
use futures_util::StreamExt;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Model name that stands for any available model.
const ANY: &str = "default";
/// Maximum number of models to list per server in a message.
const MAX_NAMED: usize = 3;

pub(super) struct Local {
    name: String,
    inner: Arc<Inner>,
}

struct Inner {
    spec: ProviderSpec,
    model: String,
    ports: Vec<u16>,
    catalogue: Catalogue,
    /// The model at the configured address, which is used if no server offers the model.
    elsewhere: Remote,
    found: OnceCell<DetectedServer>,
}

struct DetectedServer {
    remote: Remote,
    context_window: Option<u64>,
}

impl Local {
    pub(crate) fn new(spec: ProviderSpec, model: &str, ports: Vec<u16>, catalogue: Catalogue) -> Result<Self, Failure> {
        let elsewhere = Remote::new(spec.clone(), model, catalogue.clone())?;
        let name = elsewhere.name().to_owned();
        let inner = Inner { spec, model: model.to_owned(), ports, catalogue, elsewhere, found: OnceCell::new() };
        Ok(Self { name, inner: Arc::new(inner) })
    }
}

impl Model for Local {
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&self) -> ModelFacts {
        self.inner.facts(&self.name)
    }

    /// Returns what is known about the model, including the context window that its server reports.
    fn query_facts(&self) -> BoxFuture<'static, Option<ModelFacts>> {
        let (inner, name) = (Arc::clone(&self.inner), self.name.clone());
        Box::pin(async move {
            let before = inner.facts(&name);
            let told = match inner.remote().await.ok()?.query_facts().await {
                Some(told) => ModelFacts { name: name.clone(), ..told },
                None => before.clone(),
            };
            let window = inner.found.get().and_then(|found| found.context_window);
            let now = ModelFacts { context_window: window.unwrap_or(told.context_window), ..told };
            (now != before || window.is_some()).then_some(now)
        })
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let inner = Arc::clone(&self.inner);
        Box::pin(async_stream::try_stream! {
            let mut stream = inner.remote().await?.stream(request);
            while let Some(delta) = stream.next().await {
                yield delta?;
            }
        })
    }
}

impl Inner {
    fn facts(&self, name: &str) -> ModelFacts {
        match self.found.get() {
            Some(DetectedServer { remote, context_window }) => {
                let facts = remote.facts();
                ModelFacts { name: name.to_owned(), context_window: context_window.unwrap_or(facts.context_window), ..facts }
            }
            None => self.elsewhere.facts(),
        }
    }

    /// Returns the model at the server that offers it. Only success is cached, because a server may still be started
    /// after a failure.
    async fn remote(&self) -> Result<&Remote, ModelError> {
        if let Some(found) = self.found.get() {
            return Ok(&found.remote);
        }
        let servers = local_servers(&self.ports).await;
        let Some((server, model)) = servers.iter().find_map(|server| Some((server, self.find_model(server)?))) else {
            let there = servers.iter().any(|server| self.is_at_home(server));
            return if servers.is_empty() || there { Ok(&self.elsewhere) } else { Err(self.not_found_failure(&servers).into()) };
        };
        let spec = ProviderSpec { base_url: server.base_url.clone(), ..self.spec.clone() };
        let remote = Remote::new(spec, &model.name, self.catalogue.clone())?;
        let context_window = model.context_window;
        let found = self.found.get_or_init(|| std::future::ready(DetectedServer { remote, context_window })).await;
        Ok(&found.remote)
    }

    fn find_model<'a>(&self, server: &'a LocalServer) -> Option<&'a super::local_discovery::LocalModel> {
        if self.model == ANY { server.first() } else { server.model(&self.model) }
    }

    fn is_at_home(&self, server: &LocalServer) -> bool {
        server.base_url == self.spec.base_url.trim_end_matches('/').replace("//localhost:", "//127.0.0.1:")
    }

    fn not_found_failure(&self, servers: &[LocalServer]) -> Failure {
        let message = format!("no local model server has a model `{}`; found {}", self.model, list_servers(servers));
        Failure::new(FailureKind::NotFound, message, "choose one of these models, or set `providers.local.base_url`")
    }
}

/// Formats a list of servers and their models for use in a message.
pub(crate) fn list_servers(servers: &[LocalServer]) -> String {
    let told = servers.iter().map(|server| {
        let names: Vec<&str> = server.models.iter().take(MAX_NAMED).map(|model| model.name.as_str()).collect();
        let more = if server.models.len() > MAX_NAMED { ", …" } else { "" };
        let models = if names.is_empty() { "no model".to_owned() } else { format!("{}{more}", names.join(", ")) };
        format!("{} ({models})", server.name)
    });
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
