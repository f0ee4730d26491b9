//! What `?` shows.

pub(crate) const TEXT: &str = "\
q, Ctrl-C       quit
?               this help
esc             back: from here, out of a node, off a filter, to the board

tab, right, l   the next pane; shift-tab, left, h: the one before
1 2 3 4 5       running, waiting, failed, queues, events
6, a            all nodes, whatever their state
z, v            the pane alone on the screen, and back
j k, down up    move; by a page: space, page down, page up; g G: to the ends
enter           look into a node; on a queue: its nodes

/               filter: words that each stand in the id, the owner, the
                title, the project or the queue; enter keeps it, esc drops it
s               order by time, by node, by owner; S turns it round
r               read now; Ctrl-L: draw anew; Ctrl-Z: stop as a job

RUNNING  who holds what. LEFT: how long the lease lasts, unless it is
         renewed; `process`: as long as its process lives; !: less than a
         fifth of it is left, so its holder may have died. GEN: the
         generation, which counts owners. TRY: the attempt, and how many a
         task gets. ENGINE: what drives the holder. WHERE: its host and
         process. Where room is short, some columns are left out.
WAITING  what nobody can take yet: a task that must be done first, a path,
         a pool or a quota in the way, a delay, a block. AT MOST: when it
         passes by itself.
FAILED   what failed, and what was not done in time, the latest first.
QUEUES   tasks by state, pools and quotas; !: paused, full, used up.
EVENTS   what happened in the last 24 hours, the newest first.

It looks only: nothing that is pressed here changes anything.";
