//! HTTP server on a loopback socket that handles one request per connection.

use crate::ports::BoxFuture;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(super) struct Request {
    pub line: String,
    /// Request line and headers, converted to lower case, one per line.
    pub head: String,
    pub body: Value,
}

impl Request {
    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(super) fn is_get(&self) -> bool {
        self.line.starts_with("GET")
    }
}

pub(super) struct Answer {
    pub status: u16,
    /// Status line and headers, including their line breaks.
    pub head: String,
    pub body: String,
    /// Receiver for the rest of the body, which ends when the sender is dropped.
    pub more: Option<mpsc::Receiver<String>>,
}

impl Answer {
    pub(super) fn new(status: u16, head: &str, body: &str) -> Self {
        Self { status, head: head.to_owned(), body: body.to_owned(), more: None }
    }

    pub(super) fn json(body: &Value) -> Self {
        Self::new(200, "content-type: application/json\r\n", &body.to_string())
    }

    pub(super) fn events(body: &str) -> Self {
        Self::new(200, "content-type: text/event-stream\r\n", body)
    }
}

type Handler = dyn Fn(Request) -> BoxFuture<'static, Answer> + Send + Sync;

pub(super) struct Web {
    pub url: String,
    /// Request line of every request received so far.
    pub lines: Arc<Mutex<Vec<String>>>,
    address: String,
    accepts: JoinHandle<()>,
}

impl Web {
    pub(super) async fn start<F>(handler: impl Fn(Request) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        Self::at("127.0.0.1:0", handler).await
    }

    /// Starts a server that listens on this address.
    pub(super) async fn at<F>(address: &str, handler: impl Fn(Request) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let url = format!("http://{address}/mcp");
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let handler: Arc<Handler> = Arc::new(move |request| Box::pin(handler(request)));
        let kept = Arc::clone(&lines);
        let accepts = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&handler), Arc::clone(&kept)));
            }
        });
        Self { url, lines, address, accepts }
    }

    /// Stops the server, and returns the address on which it listened.
    pub(super) async fn stop(self) -> String {
        self.accepts.abort();
        let _ = self.accepts.await;
        self.address
    }
}

async fn serve(stream: TcpStream, handler: Arc<Handler>, lines: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut field = String::new();
        stream.read_line(&mut field).await.ok()?;
        if field.trim().is_empty() {
            break;
        }
        let field = field.to_lowercase();
        if let Some(bytes) = field.strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
        head.push_str(&field);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let line = line.trim().to_owned();
    lines.lock().ok()?.push(line.clone());
    let request = Request { line, head, body: serde_json::from_slice(&body).unwrap_or_default() };
    let mut answer = handler(request).await;
    let head = format!("HTTP/1.1 {} Said\r\n{}connection: close\r\n\r\n", answer.status, answer.head);
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(answer.body.as_bytes()).await.ok()?;
    stream.flush().await.ok()?;
    if let Some(more) = &mut answer.more {
        while let Some(text) = more.recv().await {
            stream.write_all(text.as_bytes()).await.ok()?;
            stream.flush().await.ok()?;
        }
    }
    stream.shutdown().await.ok()
}
