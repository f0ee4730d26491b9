//! The arguments of `claim mail`.

use std::time::Duration;

use clap::Subcommand;

use super::Once;
use super::number::number;
use claimdir::time::parse_duration;

#[derive(clap::Args, Debug)]
pub(crate) struct MailCommand {
    #[command(subcommand)]
    pub(crate) command: Mail,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Mail {
    /// Send a message
    Send(MailSend),
    /// Hand out the messages after the last one acknowledged; the same again until they are acknowledged
    Read(MailRead),
    /// Say that you have dealt with all messages up to this one
    Ack(MailAck),
    /// List the boxes, or a box's readers with their two positions
    List(MailList),
}

#[derive(clap::Args, Debug)]
pub(crate) struct MailSend {
    /// The box, made by its first message
    #[arg(value_name = "BOX")]
    pub(crate) to: String,
    /// The message: JSON, @FILE or - for standard input
    #[arg(value_name = "PAYLOAD", allow_negative_numbers = true)]
    pub(crate) payload: String,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Who sends; else the owner
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Once a box: the same key and payload again is answered with the message that is there
    #[arg(long, value_name = "KEY")]
    pub(crate) work_key: Option<String>,
    /// Only while the claim on this node is live
    #[arg(long, value_name = "ID")]
    pub(crate) claim: Option<String>,
    /// That claim's token. Better in $CLAIM_TOKEN, since arguments show in `ps`
    #[arg(long, requires = "claim")]
    pub(crate) token: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct MailRead {
    /// The box
    #[arg(value_name = "BOX")]
    pub(crate) of: String,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Who reads; else the owner
    #[arg(long = "as", value_name = "READER")]
    pub(crate) by: Option<String>,
    /// At most so many messages
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = number::<u64>(1..=u64::MAX))]
    pub(crate) limit: u64,
    /// Wait until there is something to read
    #[arg(long, value_name = "5m", num_args = 0..=1, require_equals = true, default_missing_value = "5m", value_parser = parse_duration)]
    pub(crate) wait: Option<Duration>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct MailAck {
    /// The box
    #[arg(value_name = "BOX")]
    pub(crate) of: String,
    /// The last message that you have dealt with
    #[arg(value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>(0..=u64::MAX))]
    pub(crate) number: u64,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Who has read; else the owner
    #[arg(long = "as", value_name = "READER")]
    pub(crate) by: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct MailList {
    /// The box; else all
    #[arg(value_name = "BOX")]
    pub(crate) of: Option<String>,
}
