//! An agent's call of a tool, as its hook is told of it.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;

use serde_json::{Value, json};

use super::shell;

/// What has more is not looked at: an agent writes whole files, but none of this size.
const MAX_CALL: u64 = 64 << 20;

/// All of standard input, or why it is not known.
pub(crate) fn told_on_stdin() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    match io::stdin().take(MAX_CALL + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > MAX_CALL => {
            Err(format!("standard input has more than {MAX_CALL} bytes"))
        }
        Ok(_) => Ok(bytes),
        Err(e) => Err(format!("standard input can't be read: {e}")),
    }
}

/// What a call would write, as far as that is clear.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// The agent's session.
    pub(crate) session: Option<String>,
    /// Where it is made.
    pub(crate) folder: Option<String>,
    tool: String,
    input: Value,
}

/// Files that are written, and whether there may be more.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Written {
    pub(crate) files: Vec<OsString>,
    /// Is what is written where a link leads, and not the link?
    pub(crate) through: bool,
    /// What is not judged, and why.
    pub(crate) unclear: Option<String>,
}

impl Call {
    /// A call of Claude Code's PreToolUse hook; the reason if it is none.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Call, String> {
        let call: Value = serde_json::from_slice(bytes).map_err(|e| format!("the call is not JSON: {e}"))?;
        let text = |name: &str| call[name].as_str().map(str::to_owned);
        match text("hook_event_name").as_deref() {
            None | Some("PreToolUse") => {}
            Some(other) => return Err(format!("the call is of the hook {other}, not of PreToolUse")),
        }
        let tool = text("tool_name").ok_or("the call names no tool")?;
        let (session, folder) = caller(bytes);
        Ok(Call { session, folder, tool, input: call["tool_input"].clone() })
    }

    /// What it would write. `is_folder` says whether there is such a folder.
    pub(crate) fn written(&self, is_folder: &dyn Fn(&Path) -> bool) -> Written {
        let field = match self.tool.as_str() {
            "Write" | "Edit" | "MultiEdit" => "file_path",
            "NotebookEdit" => "notebook_path",
            "Bash" => "command",
            _ => return Written::default(),
        };
        match self.input[field].as_str() {
            Some(line) if field == "command" => shell::written(line, is_folder),
            Some(file) if !file.is_empty() => {
                Written { files: vec![file.into()], through: true, unclear: None }
            }
            _ => Written { unclear: Some(format!("{} without {field}", self.tool)), ..Written::default() },
        }
    }
}

/// Whose session calls, and from where, whichever hook it is; nothing of what is no call.
pub(crate) fn caller(bytes: &[u8]) -> (Option<String>, Option<String>) {
    let call: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = |name: &str| call[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    (text("session_id"), text("cwd"))
}

/// The hook's answer that denies the call.
pub(crate) fn denial(reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }})
}
