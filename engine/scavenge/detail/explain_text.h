#pragma once

#include "engine/scavenge/detail/stream_story.h"
#include "engine/scavenge/explain.h"

namespace verger::scavenge::detail {

/// Fills decider, reason and missing of an explanation whose rules are known.
void put_into_words(const Preview& preview, const StreamStory& story, Explanation& explanation);

}  // namespace verger::scavenge::detail
