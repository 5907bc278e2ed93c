//! The keys, and what the signs mean.

use ratatui::text::{Line, Span};

use super::Look;

const TEXT: &str = "
 Keys
   n c m t p d s o   sort by name, CPU, memory, throttling, tasks (PIDs), disk,
                     pressure (stall) or marks; r turns the order round
   / Esc             filter by name, container, status or class; end the filter
   a                 pods of one namespace or of all
   e                 containers of pods that have several, of all, of none
   arrows j k g G    move; Enter opens the pod: what it gets, from where, and
                     what the kernel holds
   space             hold the figures still
   q Esc Ctrl-C      quit

 Columns
   CPU of limit      in use; the bar ends at the limit, | is the request
   MEM of max        working set; the bar ends at memory.max, | are memory.min
                     and memory.high. Without dots there is no bound, and the
                     bar ends at what the node gives to pods
   THR               seconds of CPU time that cpu.max withholds in each second
   TASK, DISK        threads; bytes of logs and scratch files
   PSI               percent of the last 10 s in which some task waited, most
                     for c cpu, m memory, i io
   MARKS             O OOM kills, D foreign changes undone, F forks refused,
                     R restarts, ! does not run or values not in effect";

/// All of it.
pub fn lines<'a>(look: &Look) -> Vec<Line<'a>> {
    let line = |text: &str| {
        let is_head = text.starts_with(' ') && !text.starts_with("  ");
        let text = if look.unicode {
            text.replace(", | ", ", │ ")
        } else {
            text.to_owned()
        };
        if is_head {
            Line::from(Span::styled(text, look.strong()))
        } else {
            Line::from(text)
        }
    };
    TEXT.lines().skip(1).map(line).collect()
}
