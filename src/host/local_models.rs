//! Local models: selects one if no other model is configured, and warns about small context windows.

use super::models::{LOCAL, ModelCatalog};
use crate::config::{NoModel, Settings};
use crate::llm::local_discovery::{LocalServer, local_servers};
use crate::llm::reported_servers;
use crate::ports::Model;
use crate::protocol::Problem;
use crate::store::SessionSummary;
use std::sync::Arc;

/// Minimum context window, in tokens, needed for a conversation with tools.
const LITTLE: u64 = 16_384;

/// The chosen model, or the reason why none could be chosen.
pub(crate) type ModelSelection = Result<Arc<dyn Model>, NoModel>;

/// Returns whether the model has been chosen neither by the user nor by a session.
pub(crate) fn is_open(settings: &Settings, flag: Option<&str>, resumed: Option<&SessionSummary>) -> bool {
    flag.is_none() && resumed.is_none_or(|summary| summary.model.is_empty()) && !settings.has_default_model()
}

/// Returns the chosen model. If there is no configured model and no key, falls back to a model from the only local
/// model server, and also returns a notice about this.
pub(crate) async fn fallback_local_model(
    models: &ModelCatalog,
    settings: &Settings,
    chosen: ModelSelection,
    open: bool,
) -> (ModelSelection, Option<String>) {
    let Err(NoModel::NoKey(problem)) = &chosen else {
        let warning = match &chosen {
            Ok(model) => warning(model.as_ref()).await,
            Err(_) => None,
        };
        return (chosen, warning);
    };
    if !open {
        return (chosen, None);
    }
    let servers = local_servers(&settings.local_ports()).await;
    match pick(&servers, problem) {
        LocalChoice::Nothing => (chosen, None),
        LocalChoice::Choose(problem) => (Err(NoModel::NoKey(problem)), None),
        LocalChoice::Ask { name, .. } if models.allowed_models().forbidding_rule(&name).is_some() => (chosen, None),
        LocalChoice::Ask { name, notice } => {
            let chosen = models.choose(Some(&name), None);
            let small = match &chosen {
                Ok(model) => warning(model.as_ref()).await,
                Err(_) => None,
            };
            (chosen, Some(small.map_or(notice.clone(), |small| format!("{notice}; {small}"))))
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum LocalChoice {
    Nothing,
    /// There are several models to choose from, which a hint lists.
    Choose(Problem),
    Ask {
        name: String,
        notice: String,
    },
}

fn pick(servers: &[LocalServer], otherwise: &Problem) -> LocalChoice {
    let able: Vec<(&LocalServer, &str)> =
        servers.iter().filter_map(|server| Some((server, server.first()?.name.as_str()))).collect();
    match able.as_slice() {
        [] => LocalChoice::Nothing,
        [(server, model)] => {
            let name = format!("{LOCAL}/{model}");
            let notice = format!(
                "no API key found; using {name} on {} at {} (choose another model with -m)",
                server.name, server.base_url
            );
            LocalChoice::Ask { name, notice }
        }
        [(_, model), ..] => {
            let there = reported_servers(servers);
            let hint = format!("choose a local model, for example `-m {LOCAL}/{model}`; found on this machine: {there}");
            LocalChoice::Choose(otherwise.clone().hint(hint))
        }
    }
}

/// Returns a warning if the model is local and has a small context window.
async fn warning(model: &dyn Model) -> Option<String> {
    if !model.name().starts_with("local/") {
        return None;
    }
    let tokens = model.query_facts().await?.context_window;
    (tokens < LITTLE).then(|| {
        format!(
            "{} runs with a context window of {tokens} tokens, too small for most tasks: text beyond that is lost. \
            Start the server with a larger one (Ollama: OLLAMA_CONTEXT_LENGTH=32768)",
            model.name()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Directories;
    use crate::llm::local_discovery::{LOCAL_PORTS, LocalModel};

    fn server(name: &str, models: &[&str]) -> LocalServer {
        let models = models.iter().map(|name| LocalModel { name: (*name).to_owned(), context_window: None }).collect();
        LocalServer { name: name.to_owned(), base_url: "http://127.0.0.1:1/v1".to_owned(), models }
    }

    #[test]
    fn a_single_local_server_is_used_and_several_need_a_choice() {
        assert_eq!(pick(&[], &"none".into()), LocalChoice::Nothing);
        assert_eq!(pick(&[server("Ollama", &[])], &"none".into()), LocalChoice::Nothing);
        let ollama = server("Ollama", &["nomic-embed-text:latest", "qwen3:8b"]);
        let LocalChoice::Ask { name, notice } = pick(&[ollama.clone(), server("vLLM", &[])], &"none".into()) else { panic!() };
        assert_eq!(name, "local/qwen3:8b");
        assert!(notice.contains("Ollama at http://127.0.0.1:1/v1"), "{notice}");
        let none = Problem::new("no API key found").hint("save one");
        let LocalChoice::Choose(problem) = pick(&[ollama, server("vLLM", &["m"])], &none) else { panic!() };
        let [first, local] = &problem.hints[..] else { panic!("{problem:?}") };
        assert_eq!((problem.what.as_str(), first.as_str()), ("no API key found", "save one"));
        assert!(local.contains("vLLM (m)") && local.contains("`-m local/qwen3:8b`"), "{local}");
    }

    #[test]
    fn the_usual_ports_are_probed_unless_configured_otherwise() {
        let nowhere = Directories::new("/nonexistent", "/nonexistent");
        let ports = |set: &[(&str, &str)]| {
            let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Settings::load(&nowhere, None, &set).map(|settings| settings.local_ports())
        };
        assert_eq!(ports(&[]).unwrap(), LOCAL_PORTS);
        assert_eq!(ports(&[("llm.local_ports", "[]")]).unwrap(), [0; 0]);
        assert_eq!(ports(&[("llm.local_ports", "[1, 65535]")]).unwrap(), [1, 65_535]);
        for bad in ["[0]", "[65536]", "11434", "[\"a\"]"] {
            assert!(ports(&[("llm.local_ports", bad)]).unwrap_err().to_string().contains("an array of ports"), "{bad}");
        }
    }
}
