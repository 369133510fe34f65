#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tests/support/object_store/s3_server.h"

namespace verger::test::detail {

struct S3Reply {
  int status = 200;
  std::map<std::string, std::string> headers{};
  std::string body{};
};
S3Reply error_reply(int status, const std::string& code);

/// What a bucket holds, and what S3 answers about it. One thread at a time.
class Bucket {
 public:
  S3Reply answer(const S3Call& call);

  std::map<std::string, std::string> objects;
  std::size_t page_size = 1000;
  struct Upload {
    std::string key;
    std::map<int, std::string> parts;
  };
  std::map<std::string, Upload> uploads;
  /// Its id.
  std::string begin_upload(const std::string& key);

 private:
  struct Kept {
    std::map<std::string, std::string> headers;
    std::string etag;
  };
  S3Reply get(const S3Call& call);
  S3Reply put(const S3Call& call);
  S3Reply put_part(const S3Call& call);
  S3Reply complete(const S3Call& call);
  S3Reply list(const S3Call& call) const;
  S3Reply list_uploads(const S3Call& call) const;
  /// What `x-amz-copy-source` (and a range of it) names.
  [[nodiscard]] const std::string* source_of(const S3Call& call) const;

  std::map<std::string, Kept> kept_;
  int uploads_begun_ = 0;
};

}  // namespace verger::test::detail
