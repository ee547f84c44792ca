//! Resources and prompts offered by a server.

use super::connection::Connection;
use super::content;
use super::failure::{request_error, truncate};
use super::limits::{DESCRIPTION_BYTES, PAGES, PROMPTS, RESOURCES};
use super::request::{Question, RequestTimeout};
use crate::ports::{RemoteError, RemoteResult};
use crate::protocol::{ServerPrompt, ServerResource};
use rmcp::model::{GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams, ServerResult};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};

/// Fetches pages one after another until there are `most` items or no more pages.
async fn pages<T, F>(most: usize, page: impl Fn(Option<PaginatedRequestParams>) -> F) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let asked = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let (found, next) = page(asked).await?;
        all.extend(found);
        cursor = next;
        if cursor.is_none() || all.len() >= most {
            break;
        }
    }
    all.truncate(most);
    Ok(all)
}

async fn with_timeout<T>(
    connection: &Connection,
    asked: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, RemoteError> {
    let timeout = connection.spec.call_timeout;
    match tokio::time::timeout(timeout, asked).await {
        Ok(answer) => answer.map_err(|error| match request_error(&connection.spec, &error) {
            // A failed list request has no effects.
            RemoteError::OutcomeUnknown { .. } => RemoteError::Unreachable {
                message: format!("the server `{}` closed the connection during the request", connection.spec.name),
            },
            error => error,
        }),
        Err(_) => Err(RemoteError::TimedOut { seconds: timeout.as_secs() }),
    }
}

fn truncate_description(text: Option<String>) -> Option<String> {
    text.map(|text| truncate(&text, DESCRIPTION_BYTES).into_owned())
}

pub(super) async fn resources(connection: &Connection) -> Result<Vec<ServerResource>, RemoteError> {
    if connection.capabilities().resources.is_none() {
        return Ok(Vec::new());
    }
    let (peer, server) = (&connection.peer, &connection.spec.name);
    with_timeout(connection, async {
        let plain = pages(RESOURCES, |page| async move {
            let found = peer.list_resources(page).await?;
            Ok((found.resources, found.next_cursor))
        })
        .await?;
        let templates = pages(RESOURCES, |page| async move {
            let found = peer.list_resource_templates(page).await?;
            Ok((found.resource_templates, found.next_cursor))
        })
        .await
        // Many servers that offer resources do not support templates.
        .unwrap_or_default();
        let plain = plain.into_iter().map(|resource| ServerResource {
            server: server.clone(),
            uri: resource.uri,
            name: resource.title.unwrap_or(resource.name),
            description: truncate_description(resource.description),
            media_type: resource.mime_type,
            is_template: false,
        });
        let templates = templates.into_iter().map(|template| ServerResource {
            server: server.clone(),
            uri: template.uri_template,
            name: template.title.unwrap_or(template.name),
            description: truncate_description(template.description),
            media_type: template.mime_type,
            is_template: true,
        });
        Ok(plain.chain(templates).take(RESOURCES).collect())
    })
    .await
}

pub(super) async fn read(connection: &Connection, uri: &str) -> Result<RemoteResult, RemoteError> {
    let question = Question::Read(ReadResourceRequestParams::new(uri));
    match connection.ask(question, &RequestTimeout::with_timeout(connection.spec.call_timeout)).await? {
        ServerResult::ReadResourceResult(result) => content::convert_resource(result),
        _ => Err(connection.unreadable()),
    }
}

pub(super) async fn prompts(connection: &Connection) -> Result<Vec<ServerPrompt>, RemoteError> {
    if connection.capabilities().prompts.is_none() {
        return Ok(Vec::new());
    }
    let (peer, server) = (&connection.peer, &connection.spec.name);
    let found = with_timeout(
        connection,
        pages(PROMPTS, |page| async move {
            let found = peer.list_prompts(page).await?;
            Ok((found.prompts, found.next_cursor))
        }),
    )
    .await?;
    let one = |prompt: rmcp::model::Prompt| ServerPrompt {
        server: server.clone(),
        name: prompt.name,
        description: truncate_description(prompt.description.or(prompt.title)),
        arguments: prompt
            .arguments
            .into_iter()
            .flatten()
            .map(|argument| (argument.name, argument.required == Some(true)))
            .collect(),
    };
    Ok(found.into_iter().map(one).collect())
}

pub(super) async fn prompt(connection: &Connection, name: &str, arguments: Map<String, Value>) -> Result<String, RemoteError> {
    let mut params = GetPromptRequestParams::new(name);
    if !arguments.is_empty() {
        params = params.with_arguments(arguments);
    }
    match connection.ask(Question::Prompt(params), &RequestTimeout::with_timeout(connection.spec.call_timeout)).await? {
        ServerResult::GetPromptResult(result) => content::convert_prompt(result),
        _ => Err(connection.unreadable()),
    }
}
