//! Tools, agents, approvals, runs and the rule: everything a call means.
//!
//! The engine does no IO of its own. It is handed a store (the ports in
//! [`port`]), a [`Sandbox`], a [`Checker`] and a clock, and answers with values;
//! `mcp`, `console` and the command line put those on their wires. It names no
//! V8, socket, JSON-RPC or HTML.

mod acquire;
mod agents;
mod approvals;
mod ask;
mod call;
mod canonical;
mod changes;
mod check;
mod command;
mod commands;
mod component;
mod connections;
mod desk;
mod diff;
mod domain;
mod engine;
mod envelope;
mod error;
mod event;
mod execute;
mod faults;
mod find;
mod first_code;
mod flight;
mod hide;
mod id;
mod in_band;
mod input;
mod jobs;
mod low_level;
mod name;
mod openapi;
mod outside;
mod owed;
mod pages;
mod passphrase;
mod permissions;
mod person;
pub mod port;
mod presets;
mod process;
mod proposals;
mod publish;
mod readable;
mod reply;
mod restored;
mod review;
mod rule;
mod run;
mod running;
mod sdk;
mod sign_in;
mod stands;
mod switches;
mod tool;
mod toolbox;
mod types;
mod waiting;
mod working_set;
mod workspace;

pub use acquire::{
    Acquired, Author, AuthorBudget, Authors, Hints as AcquireHints, JobEnd, JobError, JobView,
    Said, Turn,
};
pub use cambium_proxy::{AgentId, AskId as AskName, Connection};
pub use changes::{Changes, Topic};
pub use check::{
    CheckReport, Checker, Diagnostic, Severity, check_all_bytes, check_bytes, check_importing,
    check_input, check_module,
};
pub use command::{
    Acceptance, AskView, CallRequest, Caller, ConnectionChange, DecideRequest, ExecuteRequest,
    FindHit, FindReply, HistoryEntry, Leaving, Live, NewAgent, NewConnection, ProposalView,
    PublishRequest, Published, Publisher, StandingAnswer, SweepPlan, ToolSource, VersionLine,
    WantedConnection, Wants, WorkingSetEntry,
};
pub use component::{COMPONENT_BYTES, Manifest};
pub use connections::{read_host, read_scheme};
pub use domain::HostView;
pub use engine::{Engine, Parts, Settings};
pub use envelope::{AskRef, CallTimes, Content, Envelope, Status, VendorStatus};
pub use error::EngineError;
pub use event::Event;
pub use faults::Faults;
pub use find::{Document, Findings, Found, HITS_MAX, Index, WordScore};
pub use first_code::FirstCode;
pub use in_band::{InBandAnswer, Offer, OfferEnd};
pub use low_level::{Command, CommandEnd, CommandFault, LowLevel, LowLevelParts, Workbench};
pub use name::ToolName;
pub use openapi::{
    DOCUMENT_BYTES, DOCUMENT_BYTES_MAX, DocumentFault, Draft, Drafted, Drafts, ImportRequest,
    Imported, ImportedTool, Module, Wanted, draft_bytes, draft_document, draft_input,
};
pub use person::{PersonCredential, PersonProof, SessionEnd};
pub use presets::{Asked as AskedField, Preset, presets};
pub use process::Process;
pub use readable::{Readable, readable, readable_bytes};
pub use restored::{Ended, begin_epoch};
pub use review::{Asked, Flip, Replay};
pub use rule::{Demotion, Member, SWEEP_EVERY, SetLimits, plan};
pub use run::{
    Evidence, Job, Outcome, RunLimits, RunReport, Sandbox, StageTimes, ToolResult, Unfit,
};
pub use sdk::{NewSdk, SDK_BYTES};
pub use sign_in::SignInAnswer;
pub use switches::InBand;
pub use tool::{Agent, ListedTool, MoveCause, ToolKind, Version};
pub use types::{CONTEXT_TYPES, input_types};
pub use workspace::FileWritten;
