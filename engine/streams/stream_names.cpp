#include "engine/streams/stream_names.h"

namespace verger::streams {

bool hidden_in_all(std::string_view stream) {
  if (stream == "$epoch-information") {
    return true;
  }
  return stream.starts_with("$persistentsubscription-$all::") &&
         (stream.ends_with("-checkpoint") || stream.ends_with("-parked"));
}

}  // namespace verger::streams
